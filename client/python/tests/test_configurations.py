"""Configurations of every kind: what is sent comes back, and what is none is refused by its place.

The bytes of each form are in ``client_vectors.json``, which all clients share.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from library_words import assert_own_words

from hlorank import AnswerError, ConfigFeatures, ConfigurationError, Fusions, Layouts, Tiles
from hlorank.configurations.received import configurations_of
from hlorank.wire.messages import ConfigBatch

some = settings(derandomize=True, max_examples=40, deadline=None)
NUMBERS = st.sampled_from([np.int8, np.int64, np.float32, np.float64])
I64 = st.integers(-(1 << 63), (1 << 63) - 1)
F32 = st.floats(width=32, allow_nan=False, allow_infinity=False)


@st.composite
def repeated(draw, elements, most=12):
    """Values [configs, slots] that are drawn from a few."""
    kinds = draw(st.lists(elements, min_size=1, max_size=4))
    shape = draw(st.integers(1, most)), draw(st.integers(1, most))
    seed = draw(st.integers(0, 1 << 32))
    places = np.random.default_rng(seed).integers(len(kinds) ** 2, size=shape) % len(kinds)
    return np.array(kinds)[places]


def lists_of(elements, longest=4):
    return st.lists(st.lists(elements, max_size=longest), min_size=3, max_size=3)


def returned(configurations):
    """What is read of the message, which is sent again as it was."""
    again = configurations_of(configurations.wire)
    assert again.wire == configurations.wire and len(again) == len(configurations)
    return again


@some
@given(repeated(st.lists(st.integers(-1, 5), min_size=18, max_size=18)), NUMBERS)
def test_layouts_come_back(values, kind):
    layouts = Layouts(values.astype(kind))
    assert (len(layouts), layouts.slots) == values.shape[:2]
    by_tensor = Layouts(values.reshape(*values.shape[:2], 3, 6))
    for each in (layouts, by_tensor, returned(layouts)):
        assert (each.values().reshape(values.shape) == values).all()


@some
@given(repeated(st.booleans(), most=40), NUMBERS)
def test_fusions_come_back(bits, kind):
    fusions = Fusions(bits.astype(kind))
    assert (fusions.values() == bits).all() and fusions.values().dtype == bool
    assert (returned(fusions).values()[:, : fusions.slots] == bits).all()
    assert len(Fusions(np.zeros((3, 0)))) == 3


@some
@given(repeated(st.lists(F32, min_size=3, max_size=3)))
def test_features_of_configurations_come_back_and_no_zero_has_a_sign(values):
    features = ConfigFeatures(values)
    assert (len(features), features.nodes, features.columns) == values.shape
    for each in (features, returned(features)):
        assert each.values().tobytes() == (values.astype(np.float32) + 0).tobytes()


@some
@given(lists_of(I64), lists_of(I64))
def test_bounds_of_tiles_come_back_whatever_they_are(kernel, output):
    tiles = Tiles(kernel_bounds=kernel, output_bounds=output)
    again = returned(tiles).wire
    readable = again.tile_configs.configs
    packed = again.packed_tile_configs
    if readable:
        assert [list(one.kernel_bounds) for one in readable] == kernel
        assert [list(one.output_bounds) for one in readable] == output
    else:
        rows = [[*pair[0], *pair[1]] for pair in zip(kernel, output, strict=True)]
        assert np.frombuffer(packed.bounds, "<i4").reshape(3, -1).tolist() == rows


@some
@given(lists_of(st.integers(0, 7), 6))
def test_tiles_come_back_from_their_features(bounds):
    features = Tiles(output_bounds=bounds).features()
    assert (Tiles.from_features(features).features() == features).all()


def test_features_are_those_of_tpu_graphs():
    tile = Tiles(kernel_bounds=[[3, 1, 24, 3]], output_bounds=[[12, 4, 4, 3]])
    expected = np.zeros(24)
    expected[:16] = [3, 1, 24, 3, 0, 0, 31, 216, 12, 4, 4, 3, 0, 0, 23, 576]
    assert (tile.features() == expected).all()


def test_rows_with_indices_are_the_values_that_they_stand_for():
    rows = [[1, 2], [3, 4], [1, 2], [5, 6]]
    configs = ConfigFeatures.from_rows(rows, [[3, 0], [2, 0], [0, 0]])
    assert configs.values().tolist() == [[[5, 6], [1, 2]], [[1, 2], [1, 2]], [[1, 2], [1, 2]]]
    table = ConfigFeatures(np.repeat(configs.values(), 9, axis=0)).wire.node_feature_configs
    assert np.frombuffer(table.rows, "<f4").tolist() == [5, 6, 1, 2], "used ones, each once"


def changed(values, place, value):
    """Values of which one is another one."""
    values = np.array(values, {str: object, float: float}.get(type(value)))
    values[place] = value
    return values


TILES = Tiles(output_bounds=[[4, 4]] * 3).features()
MANY = np.arange((1 << 16) + 1)[:, None] // 7 ** np.arange(18) % 7 - 1
LAYOUTS = np.zeros((4, 8, 18), int)
REFUSED = {
    Layouts: [
        (changed(LAYOUTS, (3, 7, 5), -2), "configuration 3, slot 7 is -2, outside"),
        (changed(LAYOUTS, (3, 7, 5), 0.5), r"layouts\[3, 7, 5\] is 0.5, not a whole number"),
        (changed(LAYOUTS, (3, 7, 5), np.nan), r"layouts\[3, 7, 5\] is nan, not a whole number"),
        (LAYOUTS[..., :17], "layouts have shape"),
        (LAYOUTS.reshape(4, 8, 6, 3), "layouts have shape"),
        (LAYOUTS[:0], "no configurations"),
        (MANY[:, None], "slot 0 has 65537 distinct entries"),
    ],
    Fusions: [
        ([[0, 1], [0, 2]], "configuration 1, slot 1 is 2, expected a bool"),
        ([0, 1], r"shape \[2\], expected \[configs, slots\]"),
        (np.zeros((0, 4), bool), "no configurations"),
        ([["a"]], "expected bool"),
    ],
    ConfigFeatures: [
        ([[1.0, 2.0]], r"\[1, 2\], expected \[configurations, nodes, columns"),
        (np.zeros((2, 0, 3)), "at least one of each"),
        ([[["a"]]], "expected numbers"),
    ],
    lambda given: ConfigFeatures.from_rows(*given): [
        (([[1.0]], [[0, 1]]), "configuration 0, node 1 has row 1, but there are 1 rows"),
        (([[1.0]], [[0], [-1]]), "configuration 1, node 0 has row -1"),
        (([[1.0]], [0]), r"shape \[1\]"),
        (([[1.0]], [[0.0]]), "type float64"),
        (([[1.0]], np.zeros((0, 2), int)), "at least one"),
        (([1.0], [[0]]), r"expected \[rows, columns\]"),
    ],
    Tiles.from_features: [
        (changed(TILES, (2, 14), 9), "configuration 2 of config_feat"),
        (changed(TILES, (0, 8), -1e19), r"\[0, 8\] is .* not fit 64 bits"),
        (TILES[:0], "no configurations"),
        (TILES[:, :23], "config_feat has shape"),
    ],
    lambda given: Tiles(**given): [
        ({}, "no configurations"),
        ({"output_bounds": [[1], [2]], "kernel_bounds": [[1]]}, r"configurations: \[1, 2\]"),
    ],
    lambda bounds: Tiles(output_bounds=bounds): [
        (np.zeros((2, 2, 2), int), "output_bounds has shape"),
        ([[1.5]], r"output_bounds\[0, 0\] is 1.5, not a whole number"),
        ([[1], ["a", "b"]], "output_bounds has type"),
        ([[1, 1 << 63]], r"output_bounds\[0, 1\] is .*, which does not fit"),
        (np.array([[2.0**63]]), r"output_bounds\[0, 0\] is .*, which does not"),
        ([[1 << 64]], "output_bounds has type object"),
        ([[[1]], [[2], [3]]], "output_bounds contains lists"),
        ([[[1], [2, 3]], [[1], [2]]], "output_bounds is not an array: its lists differ"),
        ([1, 2], "output_bounds needs one list per configuration"),
    ],
}


@pytest.mark.parametrize(
    ("make", "given", "words"),
    [(make, *row) for make, rows in REFUSED.items() for row in rows],
)
def test_what_is_no_configuration_is_refused_with_its_place(make, given, words):
    with pytest.raises(ConfigurationError, match=words) as refused:
        make(given)
    assert_own_words(str(refused.value))


FORMS = {
    "packed_layout_configs": Layouts(np.arange(3600).reshape(20, 10, 18) % 7 - 1),
    "delta_layout_configs": Layouts(np.repeat(np.full((1, 3, 18), -1), 10, axis=0)),
    "packed_tile_configs": Tiles(output_bounds=[[8, 128], [16, 64]], kernel_bounds=[[3], [4]]),
    "packed_fusion_configs": Fusions(np.arange(320).reshape(20, 16) % 3 == 0),
    "node_feature_configs": ConfigFeatures(np.arange(12.0).reshape(3, 2, 2)),
}


@pytest.mark.parametrize(
    ("form", "fields"),
    [
        ("packed_layout_configs", {"indices": b"\0" * 99}),
        ("packed_layout_configs", {"indices": b"\x63" * 200}),
        ("packed_layout_configs", {"config_count": 0, "indices": b""}),
        ("delta_layout_configs", {"change_slots": [7]}),
        ("packed_tile_configs", {"bounds": b"\0\1"}),
        ("packed_fusion_configs", {"config_count": 0}),
        ("packed_fusion_configs", {"fused": b"\1\2\3"}),
        ("delta_layout_configs", {"change_counts": [2]}),
        ("node_feature_configs", {"column_count": 5}),
        ("node_feature_configs", {"features": b"\0" * 7}),
        ("node_feature_configs", {"config_count": 0}),
        ("node_feature_configs", {"rows": b"\0" * 8, "row_indices": b"\xff" * 24}),
    ],
)
def test_an_answer_whose_parts_do_not_fit_is_an_error(form, fields):
    batch = ConfigBatch.FromString(FORMS[form].wire.SerializeToString())
    for name, value in fields.items():
        if isinstance(value, list):
            getattr(getattr(batch, form), name)[:] = value
        else:
            setattr(getattr(batch, form), name, value)
    with pytest.raises(AnswerError) as refused:
        configurations_of(batch)
    assert_own_words(str(refused.value))
    with pytest.raises(AnswerError):
        configurations_of(ConfigBatch())


def test_an_entry_that_is_no_layout_is_an_error():
    batch = ConfigBatch.FromString(FORMS["packed_layout_configs"].wire.SerializeToString())
    batch.packed_layout_configs.tables[0].entries[0] = 7**6
    with pytest.raises(AnswerError, match=r"unreadable: configuration .* outside -1\.\.5"):
        configurations_of(batch)
