import numpy as np
import pytest
from library_words import assert_own_words
from measured import form_of

from hlorank import ConfigurationError, Tiles


def test_features_are_those_of_tpu_graphs():
    tile = Tiles(kernel_bounds=[[3, 1, 24, 3]], output_bounds=[[12, 4, 4, 3]])
    expected = np.zeros(24)
    expected[:16] = [3, 1, 24, 3, 0, 0, 31, 216, 12, 4, 4, 3, 0, 0, 23, 576]
    assert (tile.features() == expected).all()


def test_tiles_come_back_from_their_features():
    tiles = Tiles(
        kernel_bounds=[[3, 1, 24, 3], [2]], output_bounds=[[], [5, 0]], input_bounds=[[7], [0]]
    )
    again = Tiles.from_features(tiles.features())
    assert (again.features() == tiles.features()).all()
    bounds = [list(config.output_bounds) for config in form_of(again)[1].configs]
    assert bounds == [[], [5, 0]]


def test_bounds_travel_as_a_matrix():
    form, message = form_of(
        Tiles(output_bounds=np.array([[8, 128], [16, 64]]), kernel_bounds=[[3], [4]])
    )
    assert form == "packed_tile_configs"
    assert (message.kernel_bound_count, message.output_bound_count) == (1, 2)
    assert np.frombuffer(message.bounds, "<i4").tolist() == [3, 8, 128, 4, 16, 64]


@pytest.mark.parametrize("bounds", [[[1], [2, 3]], [[1 << 31], [1]], [[-(1 << 31) - 1], [1]]])
def test_what_cannot_be_packed_travels_readable(bounds):
    form, message = form_of(Tiles(output_bounds=bounds))
    assert form == "tile_configs"
    assert [list(config.output_bounds) for config in message.configs] == bounds


def test_features_of_no_tile_are_named():
    features = np.repeat(Tiles(output_bounds=[[4, 4]]).features(), 3, axis=0)
    features[2, 14] += 1
    with pytest.raises(ConfigurationError, match="configuration 2 of config_feat"):
        Tiles.from_features(features)


@pytest.mark.parametrize("bound", [(1 << 63) - 1, -(1 << 63)])
def test_bounds_of_64_bits_stay_what_they_are(bound):
    tiles = Tiles(output_bounds=[[bound]], kernel_bounds=np.array([[1]], np.uint64))
    [config] = form_of(tiles)[1].configs
    assert list(config.output_bounds) == [bound]


@pytest.mark.parametrize("found", [2.0**63, -1e19])
def test_features_of_more_than_64_bits_are_named(found):
    features = Tiles(output_bounds=[[4, 4]]).features()
    features[0, 8] = found
    with pytest.raises(ConfigurationError, match=r"config_feat\[0, 8\] is .* does not fit 64 bits"):
        Tiles.from_features(features)


@pytest.mark.parametrize("shape", [(0, 24), (2, 23), (24,)])
def test_features_of_another_shape_are_refused(shape):
    with pytest.raises(ConfigurationError, match=r"no configurations|config_feat has shape"):
        Tiles.from_features(np.zeros(shape))


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({}, "no configurations"),
        ({"output_bounds": []}, "no configurations"),
        (
            {"output_bounds": [[1], [2]], "kernel_bounds": [[1]]},
            r"different numbers of configurations: \[1, 2\]",
        ),
        ({"output_bounds": np.zeros((2, 2, 2), int)}, "output_bounds has shape"),
        ({"output_bounds": [[1.5]]}, r"output_bounds\[0, 0\] is 1.5, not a whole number"),
        ({"output_bounds": [[1], ["a", "b"]]}, "output_bounds has type"),
        ({"output_bounds": [[1 << 63]]}, r"output_bounds\[0, 0\] is 9223372036854775808, which"),
        ({"output_bounds": [[1, 1 << 63]]}, r"output_bounds\[0, 1\] is .*, which does not fit"),
        (
            {"output_bounds": [[1.0, -1e30]]},
            r"output_bounds\[0, 1\] is -1e\+30, which does not fit",
        ),
        ({"output_bounds": np.array([[2.0**63]])}, r"output_bounds\[0, 0\] is .*, which does not"),
        ({"output_bounds": [[1], [2, 1 << 63]]}, r"output_bounds\[2\] is .*, which does not"),
        ({"output_bounds": [[1 << 64]]}, "output_bounds has type object"),
        ({"output_bounds": [[1], [2, [3]]]}, "output_bounds is not an array: its lists differ"),
        ({"output_bounds": [[[1]], [[2], [3]]]}, "output_bounds contains lists"),
        (
            {"output_bounds": [[[1], [2, 3]], [[1], [2]]]},
            "output_bounds is not an array: its lists differ",
        ),
        ({"output_bounds": [1, 2]}, "output_bounds needs one list per configuration"),
        ({"output_bounds": 1}, "output_bounds needs one list per configuration"),
        ({"output_bounds": np.array(1)}, "output_bounds has shape"),
    ],
)
def test_what_is_no_batch_is_refused(bounds, message):
    with pytest.raises(ConfigurationError, match=message) as refused:
        Tiles(**bounds)
    assert_own_words(str(refused.value))
