from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from hlorank import (
    Adapt,
    Graph,
    InvalidRequestError,
    Layouts,
    Tiles,
)

TILES = Tiles(output_bounds=[[1, 64], [2, 64], [4, 64], [8, 64]])
SECONDS = [0.008, 0.004, 0.0022, 0.001]
TARGET = "some target"
STORED = Adapt(TARGET, use_stored=True)


@pytest.fixture
def client(keeping):
    """Nothing is kept of any target yet."""
    keeping.delete_target(TARGET)
    return keeping


def test_what_was_reported_adapts_later_calls(client, tile_graph):
    measured = Adapt(TARGET, TILES, SECONDS)
    reported = client.report_measurements(tile_graph.graph, measured)
    assert (reported.accepted, reported.known) == (4, 0)
    assert client.report_measurements(tile_graph.graph, measured).known == 4
    sent = client.rank(tile_graph.graph, TILES, adapt=measured)
    kept = client.rank(tile_graph.graph, TILES, adapt=STORED)
    assert kept.best_scores.tolist() == sent.best_scores.tolist()
    assert kept.adaptation.stored_measurements == 4 and sent.adaptation.stored_measurements == 0
    assert client.suggest(tile_graph.graph, TILES, adapt=STORED).suggestions == ()


def test_tiles_and_layouts_are_listed_as_they_were_measured(client, tile_graph, layout_graph):
    uneven = Tiles(output_bounds=[[1, 64], [2]], kernel_bounds=[[], [3]])
    layouts = Layouts(layout_graph.configurations.values()[:5])
    failed = Adapt(TARGET, uneven, [0.5, 0], [2, 1], [None, "crash"], [b"one", b"two"])
    for graph, adapt in (
        (tile_graph.graph, failed),
        (
            layout_graph.graph,
            Adapt(TARGET, layouts, [1, 2, 3, 4, 5], ids=[b"%d" % i for i in range(5)]),
        ),
    ):
        reported = client.report_measurements(graph, adapt)
        (kept,) = client.list_measurements(TARGET, reported.graph_hash).graphs
        assert (kept.target, kept.graph_hash) == (TARGET, reported.graph_hash)
        order = [adapt.ids.index(each) for each in kept.ids]
        assert kept.seconds.tolist() == [adapt.seconds[each] for each in order]
        if isinstance(kept.configurations, Tiles):
            assert kept.configurations.features().tolist() == uneven.features()[order].tolist()
            assert [kept.failures[order.index(each)] for each in (0, 1)] == [None, "crash"]
            assert kept.repeats[order.index(0)] == 2
        else:
            assert np.array_equal(kept.configurations.values(), layouts.values()[order])

    assert client.delete_target(TARGET) == 7 and not client.list_measurements().graphs


def test_measurements_of_one_graph_are_deleted_only_by_its_hash(client, tile_graph, layout_graph):
    layouts = Layouts(layout_graph.configurations.values()[:3])
    client.report_measurements(layout_graph.graph, Adapt(TARGET, layouts, [1, 2, 3]))
    client.report_measurements(tile_graph.graph, Adapt(TARGET, TILES, SECONDS))
    unsent = Graph(tile_graph.graph.whole())
    for nothing in (unsent.hash, b""):
        with pytest.raises(ValueError, match="delete_target deletes the measurements of all"):
            client.delete_measurements(TARGET, nothing)
    with pytest.raises(ValueError, match="put_graph"):
        client.list_measurements(TARGET, unsent.hash)
    assert client.delete_measurements(TARGET, client.put_graph(unsent).hash) == 4
    (kept,) = client.list_measurements(TARGET).graphs
    assert len(kept.ids) == 3
    assert client.delete_target(TARGET) == 3


def test_old_measurements_are_listed_and_deleted_by_a_time(client, tile_graph):
    graph_hash = client.report_measurements(
        tile_graph.graph, Adapt(TARGET, TILES, SECONDS)
    ).graph_hash
    (kept,) = client.list_measurements(TARGET).graphs
    now = datetime.now(UTC)
    assert all(abs(time - now.timestamp()) < 600 for time in kept.reported_at)
    old, new = now - timedelta(days=90), now + timedelta(days=1)
    assert not client.list_measurements(TARGET, reported_before=old).graphs
    assert client.list_measurements(reported_before=new).graphs[0].ids == kept.ids
    assert client.delete_target(TARGET, reported_before=old) == 0
    assert client.delete_measurements(TARGET, graph_hash, reported_before=new) == len(SECONDS)


def test_pages_follow_each_other(client, tile_graph):
    tiles = Tiles(output_bounds=[[number, 64] for number in range(1, 2501)])
    client.report_measurements(tile_graph.graph, Adapt(TARGET, tiles, [1.0] * 2500))
    sizes, after = [], None
    while after != b"":
        page = client.list_measurements(TARGET, after=after or b"")
        sizes.append(sum(len(graph.ids) for graph in page.graphs))
        after = page.next
    assert sizes == [1000, 1000, 500]


def test_graphs_come_back_as_they_were_measured(client, tile_graph, layout_graph):
    layouts = Layouts(layout_graph.configurations.values()[:3])
    measured = {tile_graph: (TILES, SECONDS), layout_graph: (layouts, [3.0, 2.0, 1.0])}
    for each, (configurations, seconds) in measured.items():
        adapt = Adapt(TARGET, configurations, seconds)
        graph_hash = client.report_measurements(each.graph, adapt).graph_hash
        kept = client.get_measured_graph(TARGET, graph_hash)
        assert (kept.hash, kept.task) == (graph_hash, each.graph.task)
        assert client.put_graph(kept).hash == graph_hash, "sent again as a whole"
        scores = [
            client.rank(graph, configurations, with_scores=True).scores.tolist()
            for graph in (each.graph, kept)
        ]
        assert scores[0] == scores[1]

    assert client.get_measured_graph("another target", graph_hash) is None


def test_versions_are_compared_on_what_was_measured(client, tile_graph):
    first, second = "tile-xla-cpu", "tile-xla-cpu-sage"
    nothing = client.compare_models(first, second)
    assert (nothing.graphs, nothing.better) == (0, None)
    measured = Adapt(TARGET, TILES, SECONDS)
    client.report_measurements(tile_graph.graph, measured)
    compared = client.compare_models(first, second, TARGET)
    assert (compared.first.name, compared.second.name) == (first, second)
    assert compared.first.version and compared.second.version
    assert (compared.graphs, compared.configs, compared.better) == (1, len(SECONDS), None)
    difference = compared.kendall_tau.second - compared.kendall_tau.first
    assert compared.kendall_tau.difference == pytest.approx((difference, difference)), "one graph"
    pairs, regret = compared.ordered_pairs, compared.top_pick_regret
    assert 0 <= pairs.first <= 1 and 0 <= pairs.second <= 1
    assert regret.first >= 0 and regret.second >= 0

    with pytest.raises(InvalidRequestError, match="a model of layout configurations"):
        client.compare_models(first, "layout-xla-cpu")
    with pytest.raises(ValueError, match="a model is given as NAME"):
        client.compare_models(first, "@1")


def test_a_reporter_is_shown_learned_from_and_deleted(client, tile_graph):
    graph = tile_graph.graph
    client.report_measurements(graph, Adapt(TARGET, TILES, SECONDS))
    (listed,) = client.list_measurements(TARGET).graphs
    assert listed.reporters == ("127.0.0.1",) * 4, "the address, since calls need no token"
    own = client.rank(graph, TILES, adapt=Adapt(TARGET, use_stored=True, own_only=True))
    assert own.adaptation.stored_measurements == 4 and len(own.adaptation.reporters) == 1
    assert client.delete_reporter("another") == 0
    with pytest.raises(ValueError, match="reporter is empty"):
        client.delete_reporter("")
    assert client.delete_reporter("127.0.0.1", "another target") == 0
    assert client.delete_reporter("127.0.0.1") == 4
