import numpy as np
import pytest
from measured import read_graphs
from servers import DATA

from hlorank import (
    Adapt,
    Client,
    Experience,
    HlorankError,
    Kept,
    Result,
    Tiles,
    UnavailableError,
)
from hlorank.answers.ranking import distinct_first

TARGET = "some board"
BOUNDS = [(1 << i, 1 << j) for i in range(6) for j in range(6)]


@pytest.fixture
def experience(keeping, tile_graph):
    """Nothing is kept of its target yet."""
    keeping.delete_target(TARGET)
    return begun(keeping, tile_graph)


def begun(client, tile_graph):
    return Experience(
        client, tile_graph.graph, lambda tiles: Tiles(output_bounds=tiles), Kept(TARGET)
    )


def test_what_is_measured_is_kept_with_its_failures(experience, keeping):
    results = [Result(0.002), Result(failure="timeout"), Result(0.001), Result(failure="compile")]
    experience.add(BOUNDS[:2], results[:2])
    experience.add(BOUNDS[2:4], results[2:])
    (kept,) = keeping.list_measurements(TARGET).graphs
    found = dict(zip(map(tuple, bounds_of(kept.configurations)), kept.failures, strict=True))
    assert found == dict(zip(BOUNDS, (result.failure for result in results), strict=False))
    assert sorted(kept.seconds.tolist()) == [0, 0, 0.001, 0.002]
    assert str(experience.kept) == f"4 measurements are kept for later searches on '{TARGET}'"


def bounds_of(tiles):
    return tiles.features()[:, 8:10].astype(int).tolist()


def test_a_later_search_begins_with_what_an_earlier_one_measured(experience, keeping, tile_graph):
    by_model, predicted = experience.order(BOUNDS, 4)
    assert not predicted.is_learned and predicted.unit is None
    # What the model ranks last is fastest.
    measured = by_model[::3]
    results = [Result(0.01 * 0.8**place) for place in range(len(measured))]
    experience.add([BOUNDS[number] for number in measured], results)
    order, predicted = begun(keeping, tile_graph).order(BOUNDS, 4)
    assert predicted.is_learned and predicted.unit == "seconds"
    assert order[0] == predicted.scores.argmin()
    assert by_model.index(order[0]) > len(BOUNDS) / 2, "it knows better than the model"
    assert not set(order[1:4]) & set(measured), "and repeats nothing else"


def test_the_last_of_several_is_what_the_server_suggests(experience, keeping, tile_graph):
    experience.add(BOUNDS[:5], [Result(0.001 * (1 + i)) for i in range(5)])
    left = BOUNDS[5:]
    order, predicted = experience.order(left, 4)
    assert sorted(order) == list(range(len(left))), "each once"
    fastest = distinct_first(predicted.scores)
    assert order[:3] == fastest[:3]
    suggested = keeping.suggest(
        tile_graph.graph,
        Tiles(output_bounds=left),
        adapt=experience.lessons(),
        pending=order[:3],
        since_improvement=4,
    )
    assert order[3] == suggested.configs[0]
    assert experience.order(left, 1)[0] == fastest


def test_without_a_store_a_search_learns_from_itself(ranker, tile_graph):
    search = begun(ranker, tile_graph)
    search.add(BOUNDS[:4], [Result(0.001 * (1 + i)) for i in range(4)])
    assert search.kept.is_off and not str(search.kept)
    assert search.predict(BOUNDS).is_learned
    assert not begun(ranker, tile_graph).predict(BOUNDS).is_learned


def test_a_report_that_fails_is_repeated_with_the_next_one(experience, keeping, monkeypatch):
    def gone(*_, **__):
        raise HlorankError("the server is gone")

    with monkeypatch.context() as patch:
        patch.setattr(Client, "report_measurements", gone)
        experience.add(BOUNDS[:2], [Result(0.002), Result(0.001)])
    assert "the server is gone" in str(experience.kept)
    experience.add(BOUNDS[2:3], [Result(0.003)])
    assert "3 measurements are kept" in str(experience.kept)
    assert len(keeping.list_measurements(TARGET).graphs[0].seconds) == 3


def test_a_server_that_is_gone_is_an_error_of_predictions_alone(tile_graph):
    with Client("127.0.0.1:1", retries=0) as client:
        search = begun(client, tile_graph)
        search.add(BOUNDS[:1], [Result(0.001)])
        with pytest.raises(UnavailableError):
            search.order(BOUNDS, 2)
    assert "not all measurements are kept" in str(search.kept)


@pytest.mark.parametrize(
    ("scores", "seen", "expected"),
    [
        ([3.0, 1.0, 2.0], [], [1, 2, 0]),
        ([1.0, 2.0, 1.0], [], [0, 1, 2]),
        ([1.0, 2.0, 3.0], [2.0000001], [0, 2, 1]),
        ([1.0, np.inf, np.inf], [], [0, 1, 2]),
    ],
)
def test_candidates_that_a_model_cannot_tell_apart_come_last(scores, seen, expected):
    assert distinct_first(np.array(scores), seen) == expected


def test_other_kernels_of_the_structure_decide_if_they_agree(keeping):
    target, kernels = "a board with a pool", read_graphs(DATA / "pools/halide_kernels.pb")
    for kernel in kernels:
        report(keeping, target, kernel)
    searches = (alone(keeping, target, kernel) for kernel in kernels)
    tiles, search, order = next(found for found in searches if found[1]._follows_kernels)
    by_model = keeping.rank(search.graph, Tiles.from_features(tiles)).best.tolist()
    first, rest = order[:4], order[4:]
    assert order != by_model
    search.add([tiles[number] for number in first], [Result(0.001 * (9 - i)) for i in range(4)])
    following, _ = search.order([tiles[number] for number in rest], 4)
    assert following == list(range(len(rest))), "its own times change nothing"
    assert not search.kept.measurements
    search.report()
    assert search.kept.measurements == 4
    assert keeping.list_measurements(target, search.graph.hash).graphs


def alone(client, target, kernel):
    """The tiles of a kernel and their order, of which the server keeps no measurement."""
    graph_hash = client.put_graph(kernel.graph).hash
    client.delete_measurements(target, graph_hash)
    search = Experience(client, kernel.graph, Tiles.from_features, Kept(target))
    tiles = list(np.unique(kernel.configurations.features(), axis=0))
    order, _ = search.order(tiles, 4)
    if not search._follows_kernels:
        report(client, target, kernel)
    return tiles, search, order


def report(client, target, kernel):
    adapt = Adapt(target, kernel.configurations, kernel.run_times * 1e-9)
    client.report_measurements(kernel.graph, adapt)
