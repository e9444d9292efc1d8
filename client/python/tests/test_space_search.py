from concurrent.futures import ThreadPoolExecutor

import grpc
import numpy as np
import pytest
from fake_server import answered, fake_server, ranking_of
from measured import form_of

from hlorank import ArgumentError, Client, RefusedError, Space

SPACE = Space(
    "stencil",
    {"tile": [4, 8, 16, 32, 64, 128], "unroll": [1, 2, 4, 8], "vectorize": [False, True]},
    constraints=lambda one: one["unroll"] <= one["tile"],
)
TARGET = "a board"


def seconds_of(one, best_tile=32):
    """The run time of a configuration on a board that likes some tile best."""
    far = abs(np.log2(one["tile"] / best_tile)) + abs(np.log2(one["unroll"] / 4))
    return 0.001 * 1.5**far * (1 if one["vectorize"] else 3)


def fastest(best_tile=32):
    return min(range(len(SPACE)), key=lambda number: seconds_of(SPACE[number], best_tile))


def test_requests_have_the_space_what_was_measured_and_what_is_asked():
    measured = {"tile": 8, "unroll": 2, "vectorize": True}
    with (
        fake_server(code=grpc.StatusCode.UNIMPLEMENTED) as server,
        Client(server.address) as client,
    ):
        search = client.search(SPACE, TARGET, other_targets=["b", "c"], seed=5)
        everything = client.search(SPACE, TARGET, all_other_targets=True, model="stencils@2")
        for call in (
            lambda: search.report(measured, 0.25, repeats=7),
            lambda: search.suggest(3),
            lambda: everything.rank(top_k=2),
        ):
            with pytest.raises(RefusedError):
                call()
    assert search.best == (measured, 0.25), "although the report failed"
    reported, suggested, ranked = server.requests
    for request in (suggested, ranked):
        assert request.graph == SPACE.graph.whole()
        assert request.batch.node_feature_configs == form_of(SPACE.configurations())[1]
        assert request.adapt.target == TARGET and request.adapt.use_stored
    assert (suggested.count, suggested.seed, list(suggested.pending)) == (3, 5, [])
    assert list(suggested.adapt.other_targets) == ["b", "c"]
    assert list(suggested.adapt.seconds) == list(reported.seconds) == [0.25]
    assert suggested.adapt.batch == reported.batch
    assert not suggested.adapt.all_other_targets and ranked.adapt.all_other_targets
    assert (ranked.top_k, ranked.model.name, ranked.model.version) == (2, "stencils", 2)
    assert (reported.target, list(reported.repeats)) == (TARGET, [7])
    assert reported.batch.node_feature_configs == form_of(SPACE.configurations([measured]))[1]


def test_what_an_answer_rests_on_is_named():
    sources = [
        {"kind": 2, "lists": 4, "measured_configs": 90, "model_tau": 0.25, "refusal": 4},
        {"kind": 3, "target": "b", "measured_configs": 40, "used": True, "agreement": 0.5},
        {"kind": 3, "target": "c", "refusal": 3},
        {"kind": 99, "refusal": 99},
    ]
    adaptation = {"target": TARGET, "sources": sources, "rests_on": [1, 2, 4, 5, 99]}
    with answered(ranking_of([0.0], adaptation=adaptation, confidence={})) as client:
        ranking = client.rank(SPACE.graph, SPACE.configurations([0]))
    found, expected = ranking.adaptation, ranking.confidence
    assert expected.expected_slowdown is None and expected.expected_slowdown_p90 is None
    assert found.rests_on == ("model", "measurements", "other_targets", "other_instances")
    kernels, used, refused, newer = found.sources
    assert (kernels.kind, kernels.lists, kernels.model_tau) == ("kernels", 4, 0.25)
    assert (kernels.used, kernels.refusal) == (False, "no_better_than_model")
    assert (used.target, used.measured_configs, used.used, used.agreement) == ("b", 40, True, 0.5)
    assert (used.refusal, refused.refusal) == ("", "contradicted")
    assert (newer.kind, newer.refusal) == ("unknown", "unknown")


INSTANCES = {
    "target": TARGET,
    "sources": [
        {"kind": 1, "lists": 216, "measured_configs": 6480, "used": True, "agreement": 0.8},
        {"kind": 3, "target": "b", "refusal": 2},
    ],
    "rests_on": [5],
}


def test_a_search_says_on_how_many_instances_an_answer_rests_and_what_it_may_lose():
    confidence = {"expected_slowdown": 1.0124, "expected_slowdown_p90": 1.04}
    said = "nobody measured an instance whose dtype is 'fp8'"
    warnings = [{"reason": "INSTANCE_VALUE_UNKNOWN", "message": said}, {"reason": "OTHER"}]
    scores = [0.01 * number for number in range(len(SPACE))]
    answer = ranking_of(scores, adaptation=INSTANCES, confidence=confidence, warnings=warnings)
    with answered(answer) as client:
        search = client.search(SPACE, TARGET)
        assert search.rests_on == "" and "rests on" not in repr(search)
        assert search.rank(0).confidence.expected_slowdown == pytest.approx(1.0124)
    assert search.rests_on == (
        "216 instances, 6,480 measurements; the first pick is expected 1.2 % above the best, "
        f"nine of ten below 4.0 %; {said}"
    )
    assert repr(search).endswith(f"rests on {search.rests_on}")


@pytest.mark.parametrize(
    ("scores", "adaptation", "unit", "kept"),
    [
        ([-1.0, -0.981, -0.97], INSTANCES, 0, 1),
        ([-1.0, -0.98, -0.97], INSTANCES, 0, 0),
        ([-7.0, -6.981, -6.5], INSTANCES | {"rests_on": [2], "adapted": True}, 2, 1),
        ([1.0, 1.019, 1.5], INSTANCES | {"rests_on": [1]}, 1, 1),
        ([1.0, 1.021, 1.5], INSTANCES | {"rests_on": [1]}, 1, 0),
        ([1.0, 1.001, 1.5], INSTANCES | {"rests_on": [1]}, 0, 0),
    ],
)
def test_a_former_pick_stays_unless_another_is_faster_by_two_percent(
    scores, adaptation, unit, kept
):
    space = Space("three", {"tile": [1, 2, 4]})
    with answered(ranking_of(scores, adaptation=adaptation, unit=unit)) as client:
        search = client.search(space, TARGET)
        assert search.predicted_best(space[1]) == space[kept]
        assert search.predicted_best(0) == space[0]
        with pytest.raises(ArgumentError, match="the configuration is 3"):
            search.predicted_best(3)


def test_a_former_pick_does_not_stay_if_nothing_is_known():
    space = Space("three", {"tile": [1, 2, 4]})
    with answered(ranking_of([0.0] * 3, adaptation={"target": TARGET})) as client:
        assert client.search(space, TARGET).predicted_best(1) is None


def test_a_search_from_nothing_finds_the_fastest_configuration(learner):
    search = learner.search(SPACE, "from nothing")
    for _ in range(15):
        (configuration,) = search.suggest()
        search.report(configuration, seconds_of(configuration))
    ranking = search.rank(top_k=3)
    assert search.best == (SPACE[fastest()], pytest.approx(0.001))
    assert search.adaptation.rests_on == ("measurements",)
    assert ranking.best[0] == fastest() and ranking.unit == "log_seconds"
    assert ranking.model is None
    assert ranking.predicted_seconds[0] == pytest.approx(0.001, rel=0.3)


def test_what_was_suggested_or_measured_is_not_suggested_again(learner):
    search = learner.search(SPACE, "every configuration")
    first = search.suggest(4)
    assert len({SPACE.number(one) for one in first}) == 4
    for one in first[:3]:
        search.report(one, seconds_of(one))
    search.report(first[3], failure="crash")
    rest = search.suggest(64)
    assert sorted(map(SPACE.number, [*first, *rest])) == list(range(len(SPACE)))
    assert search.suggest() == []


def test_threads_that_share_a_search_measure_different_configurations(learner):
    search = learner.search(SPACE, "threads")

    def work(_):
        (configuration,) = search.suggest()
        search.report(configuration, seconds_of(configuration))
        return SPACE.number(configuration)

    with ThreadPoolExecutor(4) as threads:
        assert len(set(threads.map(work, range(16)))) == 16


def test_a_later_search_on_the_same_target_begins_with_the_predicted_best(client):
    search = client.search(SPACE, "begun")
    assert search.predicted_best() is None
    for number in range(len(SPACE)):
        search.report(number, seconds_of(SPACE[number]))
    later = client.search(SPACE, "begun")
    assert later.predicted_best() == SPACE[fastest()] and later.best is None
    assert later.adaptation.stored_measurements == len(SPACE)
    assert later.suggest() == []
    kept = client.get_measured_graph("begun", SPACE.graph.hash)
    assert kept.whole() == SPACE.graph.whole() and kept.route == SPACE.graph.route
