from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from hlorank import Adapt, Graph, Layouts, Tiles

TILES = Tiles(output_bounds=[[1, 64], [2, 64], [4, 64], [8, 64]])
SECONDS = [0.008, 0.004, 0.0022, 0.001]
TARGET = "some target"
MEASURED = Adapt(TARGET, TILES, SECONDS)


@pytest.fixture
def client(keeping):
    """Nothing is kept of any target yet."""
    keeping.delete_target(TARGET)
    return keeping


def test_a_call_and_a_stream_are_adapted_alike(client, tile_graph):
    ranking = client.rank(tile_graph.graph, TILES, adapt=MEASURED)
    with client.rank_stream(tile_graph.graph, adapt=MEASURED) as stream:
        stream.send(TILES)
        streamed = stream.finish()
    for each in (ranking, streamed):
        assert each.best.tolist() == [3, 2, 1, 0]
        assert np.allclose(np.log(each.predicted_seconds), each.best_scores, atol=1e-4)
        assert each.log_sd.shape == (4,) and (each.log_sd > 0).all()
        assert each.adaptation.adapted and each.adaptation.measured_configs == 4
        assert each.adaptation.target == TARGET
    assert ranking.log_sd.tolist() == streamed.log_sd.tolist()


def test_what_to_measure_next_is_suggested(client, tile_graph):
    graph = tile_graph.graph
    measured = Adapt(TARGET, Tiles(output_bounds=[[1, 64], [2, 64], [4, 64]]), SECONDS[:3])
    first = client.suggest(graph, TILES, count=2)
    assert [suggestion.reason for suggestion in first.suggestions] == ["model"] * 2
    assert first.adaptation is None
    suggested = client.suggest(graph, TILES, adapt=measured, count=8)
    (last,) = suggested.suggestions
    assert suggested.configs.tolist() == [3], "the others are measured"
    assert last.reason == "expected_improvement" and last.expected_improvement > 0
    assert np.isclose(np.log(last.predicted_seconds), last.score, atol=1e-4)
    assert suggested.adaptation.measured_configs == 3
    assert client.suggest(graph, TILES, adapt=measured, pending=[3]).suggestions == ()
    drawn = client.suggest(graph, TILES, adapt=measured, since_improvement=5, seed=4)
    assert drawn.suggestions[0].reason == "random"


def test_combinations_of_layouts_are_suggested(client, layout_graph):
    graph, candidates = layout_graph.graph, Layouts(layout_graph.configurations.values()[:12])
    sent = client.rank(graph, candidates)
    for source in ("segments", "nodes"):
        suggested = client.suggest(graph, candidates, count=3, source=source)
        assert suggested.configs.tolist() == [0, 1, 2]
        ranked = client.rank(graph, suggested.combinations, with_scores=True)
        assert [each.score for each in suggested.suggestions] == ranked.scores.tolist()
        assert ranked.best_scores[0] <= sent.best_scores[0], "it begins with the best"
    assert client.suggest(graph, candidates).combinations is None


def test_measurements_and_their_graphs_come_back(client, tile_graph, layout_graph):
    uneven = Tiles(output_bounds=[[1, 64], [2]], kernel_bounds=[[], [3]])
    layouts = Layouts(layout_graph.configurations.values()[:2])
    outcomes = [0.5, 0], [2, 1], [None, "crash"], [b"one", b"two"]
    for graph, configurations, content in (
        (tile_graph.graph, uneven, Tiles.features),
        (layout_graph.graph, layouts, Layouts.values),
    ):
        measured = Adapt(TARGET, configurations, *outcomes)
        graph_hash = client.report_measurements(graph, measured).graph_hash
        (kept,) = client.list_measurements(TARGET, graph_hash).graphs
        assert (kept.target, kept.graph_hash, kept.fastest) == (TARGET, graph_hash, 0.5)
        order = np.argsort(kept.ids)
        columns = (kept.seconds, kept.repeats, kept.failures, kept.ids)
        found = [[column[number] for number in order] for column in columns]
        assert found == [*outcomes]
        assert np.array_equal(content(kept.configurations)[order], content(configurations))
        again = client.get_measured_graph(TARGET, graph_hash)
        assert (again.hash, again.task) == (graph_hash, graph.task)
        assert client.put_graph(again).hash == graph_hash, "sent again as a whole"
    assert client.get_measured_graph("another target", graph_hash) is None
    assert client.delete_target(TARGET) == 4 and not client.list_measurements().graphs


def test_measurements_of_one_graph_are_deleted_only_by_its_hash(client, tile_graph, layout_graph):
    layouts = Layouts(layout_graph.configurations.values()[:3])
    client.report_measurements(layout_graph.graph, Adapt(TARGET, layouts, [1, 2, 3]))
    client.report_measurements(tile_graph.graph, MEASURED)
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
    graph_hash = client.report_measurements(tile_graph.graph, MEASURED).graph_hash
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


def test_versions_are_compared_on_what_was_measured(client, tile_graph):
    first, second = "tile-xla-cpu", "tile-xla-cpu-sage"
    nothing = client.compare_models(first, second)
    assert (nothing.graphs, nothing.better) == (0, None)
    client.report_measurements(tile_graph.graph, MEASURED)
    compared = client.compare_models(first, second, TARGET)
    assert (compared.first.name, compared.second.name) == (first, second)
    assert compared.first.version and compared.second.version
    assert (compared.graphs, compared.configs, compared.better) == (1, len(SECONDS), None)
    difference = compared.kendall_tau.second - compared.kendall_tau.first
    assert compared.kendall_tau.difference == pytest.approx((difference, difference)), "one graph"
    pairs, regret = compared.ordered_pairs, compared.top_pick_regret
    assert 0 <= pairs.first <= 1 and 0 <= pairs.second <= 1
    assert regret.first >= 0 and regret.second >= 0


def test_a_reporter_is_shown_learned_from_and_deleted(client, tile_graph):
    graph = tile_graph.graph
    for known in (0, 4):
        reported = client.report_measurements(graph, MEASURED)
        assert (reported.accepted, reported.known) == (4 - known, known)
    (listed,) = client.list_measurements(TARGET).graphs
    assert listed.reporters == ("127.0.0.1",) * 4, "the address, since calls need no token"
    own = client.rank(graph, TILES, adapt=Adapt(TARGET, use_stored=True, own_only=True))
    assert own.adaptation.stored_measurements == 4 and len(own.adaptation.reporters) == 1
    assert client.delete_reporter("another") == 0
    with pytest.raises(ValueError, match="reporter is empty"):
        client.delete_reporter("")
    assert client.delete_reporter("127.0.0.1", "another target") == 0
    assert client.delete_reporter("127.0.0.1") == 4
