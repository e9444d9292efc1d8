"""Configurations that a server sends are read in every form of the wire."""

import numpy as np
import pytest
from fake_server import answered
from library_words import assert_own_words
from measured import form_of

from hlorank import AnswerError, ConfigFeatures, Fusions, Layouts, Tiles
from hlorank.configurations.received import configurations_of
from hlorank.wire.messages import ConfigBatch, ListMeasurementsResponse


def drawn(*shape, least=-1, most=6):
    return np.random.default_rng(7).integers(least, most, shape)


def few(values):
    """The first configuration ten times, once with a change."""
    few = np.repeat(values[:1], 10, axis=0)
    few[4] = values[1]
    return few


MANY = np.full((300, 2, 18), -1)
MANY[:, 1, :4] = np.stack(np.unravel_index(np.arange(300), (6, 6, 6, 6)), axis=1)
FORMS = {
    "packed_layout_configs": [Layouts(drawn(20, 5, 18)), Layouts(MANY)],
    "delta_layout_configs": [Layouts(few(np.repeat(drawn(2, 1, 18), [1, 1], axis=0)))],
    "packed_tile_configs": [Tiles(output_bounds=[[8, 128], [16, 64]], kernel_bounds=[[3], [4]])],
    "tile_configs": [Tiles(output_bounds=[[1], [2, 1 << 40]], input_bounds=[[], [5]])],
    "packed_fusion_configs": [Fusions(drawn(20, 16, least=0, most=2))],
    "delta_fusion_configs": [Fusions(np.repeat(drawn(1, 96, least=0, most=2), 10, axis=0))],
    "node_feature_configs": [
        ConfigFeatures(drawn(3, 2, 2).astype(float)),
        ConfigFeatures(np.ones((20, 4, 3))),
    ],
}


def values_of(configurations):
    return (
        configurations.features() if isinstance(configurations, Tiles) else configurations.values()
    ).tolist()


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_read_as_it_was_written(form):
    for configurations in FORMS[form]:
        assert form_of(configurations)[0] == form
        again = configurations_of(configurations.wire)
        assert again.wire == configurations.wire
        assert values_of(again) == values_of(configurations)


def changed(form, **fields):
    batch = ConfigBatch.FromString(FORMS[form][0].wire.SerializeToString())
    message = getattr(batch, form)
    for name, value in fields.items():
        if isinstance(value, list):
            getattr(message, name)[:] = value
        else:
            setattr(message, name, value)
    return batch


@pytest.mark.parametrize(
    "batch",
    [
        ConfigBatch(),
        changed("packed_layout_configs", indices=b"\0" * 99),
        changed("packed_layout_configs", indices=b"\x63" * 100),
        changed("packed_layout_configs", config_count=0, indices=b""),
        changed("delta_layout_configs", change_slots=[7]),
        changed("packed_tile_configs", bounds=b"\0\1"),
        changed("packed_fusion_configs", config_count=0),
        changed("packed_fusion_configs", fused=b"\1\2\3"),
        changed("delta_fusion_configs", change_counts=[1], change_slots=[96]),
        changed("delta_fusion_configs", change_counts=[2], change_slots=[1]),
        changed("delta_fusion_configs", change_counts=[], change_slots=[]),
        changed("node_feature_configs", column_count=5),
        changed("node_feature_configs", features=b"\0" * 7),
        changed("node_feature_configs", config_count=0),
    ],
)
def test_what_does_not_fit_is_an_error(batch):
    with pytest.raises(AnswerError) as refused:
        configurations_of(batch)
    assert_own_words(str(refused.value))


def test_an_entry_that_is_no_layout_is_an_error():
    batch = changed("packed_layout_configs")
    batch.packed_layout_configs.tables[0].entries[0] = 7**6
    with pytest.raises(AnswerError, match=r"unreadable: configuration .* outside -1\.\.5"):
        configurations_of(batch)


def test_rows_that_do_not_exist_are_an_error():
    batch = ConfigBatch.FromString(FORMS["node_feature_configs"][1].wire.SerializeToString())
    batch.node_feature_configs.row_indices = b"\xff" * 320
    with pytest.raises(AnswerError, match="has row 4294967295"):
        configurations_of(batch)


def test_measurements_are_listed_with_what_was_measured():
    kept = {"target": "a", "graph_hash": bytes(32), "seconds": [1, 0], "repeats": [1, 1]}
    kept |= {"failures": [0, 2], "ids": [b"a", b"b"]}
    tiles = FORMS["packed_tile_configs"][0]
    page = ListMeasurementsResponse(graphs=[kept | {"batch": tiles.wire}])
    with answered(page.SerializeToString()) as client:
        (listed,) = client.list_measurements().graphs
    assert listed.configurations.wire == tiles.wire
    assert listed.failures == (None, "crash") and listed.fastest == 1
    page.graphs[0].ids.append(b"c")
    with answered(page.SerializeToString()) as client, pytest.raises(AnswerError, match="lengths"):
        client.list_measurements()
