"""Random Halide pipelines, schedules of the autoscheduler, and their collection."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("scipy", reason="scipy is not installed")
pytest.importorskip("halide", reason="halide is not installed")

import halide as hl
from hlorank_tune.measure.atomic_files import read_json
from hlorank_tune.measure.rounds import Protocol
from hlorank_tune.measure.workers import Worker

from hlorank_training.measuring.halide import collect
from hlorank_training.measuring.halide.adams2019 import apply_schedule
from hlorank_training.measuring.halide.collect import ScheduleLimits, collect_halide
from hlorank_training.measuring.halide.features import CONFIG_FEATURES, FEATURE_SET, NODE_FEATURES
from hlorank_training.measuring.halide.messages import Compile, Compiled, Failed, Search
from hlorank_training.measuring.halide.pipeline import Pipeline, PipelineError
from hlorank_training.measuring.halide.random_pipelines import RandomPipeline, random_pipeline
from hlorank_training.measuring.halide.schedule import Draw
from hlorank_training.measuring.halide.stages import stage_graph
from hlorank_training.measuring.halide.weights import shipped_weights
from hlorank_training.measuring.halide.worker import Programs, serve

TEN = 6
"""A pipeline of ten stages."""
PROTOCOL = Protocol(warmups=1, rounds=2, most_rounds=2, seconds=0.01, tries=0, clock="process")
PRINTED = """
Node: out
  Stage 0:
  Stage 1:
  pointwise: 0 input: 0
Node: blur
  Stage 0:
  pointwise: 1 input: 0
Node: image
  Stage 0:
  pointwise: 1 input: 1
Edge: blur -> out.update(0)
Edge: image -> blur
Node: out
  Stage 0:
"""


def test_stages_and_edges_are_read_from_what_the_autoscheduler_prints():
    stages, edges = stage_graph(PRINTED)
    assert stages == ("out.update(0)", "out", "blur")
    assert edges.tolist() == [[0, 1], [0, 2]]


def test_a_schedule_has_the_features_of_every_stage():
    assert (len(NODE_FEATURES), len(CONFIG_FEATURES)) == (287, 39)
    assert len(set(NODE_FEATURES) | set(CONFIG_FEATURES)) == 287 + 39
    one, other = (apply_schedule(random_pipeline(TEN), Draw(n, noise=n * 0.8)) for n in (0, 1))
    stages = len(one.stages)
    assert one.node_features.shape == (stages, 287) and one.config_features.shape == (stages, 39)
    assert np.array_equal(one.node_features, other.node_features)
    assert not np.array_equal(one.config_features, other.config_features)
    assert np.array_equal(one.edges, other.edges) and one.edges.max() < stages
    assert set(one.edges[:, 0]) | set(one.edges[:, 1]) == set(range(stages)), "all are connected"
    assert one.predicted_milliseconds > 0 and "vectorize" in one.source + other.source


def test_small_pipelines_have_seeds_of_their_own():
    assert [collect._seed(number) for number in range(8)] == [0, *range(10_000, 10_005), 1, 10_005]
    sizes = [len(apply_schedule(random_pipeline(seed), Draw(0)).stages) for seed in (10_006, TEN)]
    assert sizes == [4, 10]


def test_equal_draws_are_equal_schedules():
    draw = Draw(5, noise=0.4, keep=50)
    one, other = (apply_schedule(random_pipeline(TEN), draw) for _ in range(2))
    assert np.array_equal(one.config_features, other.config_features)


def test_the_weights_are_those_of_the_cost_model():
    assert [weights.size for weights in shipped_weights()] == [2240, 8, 936, 24, 1024, 32]
    assert all(np.isfinite(weights).all() and weights.any() for weights in shipped_weights())


def test_pipelines_differ_and_are_of_a_wanted_size():
    sizes = [len(apply_schedule(random_pipeline(seed), Draw(0)).stages) for seed in (2, 5, TEN)]
    assert len(set(sizes)) == 3 and min(sizes) >= 8 and max(sizes) <= 40


@pytest.fixture
def small(monkeypatch):
    # One of six pipelines is large: the seventh of them has seed 6.
    monkeypatch.setattr(collect, "count", lambda: [6 * TEN])


def test_a_pipeline_is_measured_once(small, tmp_path):
    limits = ScheduleLimits(schedules=4, draws=12, least=2)
    collect_halide(tmp_path, 10, PROTOCOL, limits)
    with np.load(tmp_path / "p00006.npz") as arrays:
        assert arrays["feature_set"].tobytes().decode() == FEATURE_SET
        runtimes, configs = arrays["config_runtime"], arrays["config_features"]
        assert configs.shape == (4, len(arrays["node_features"]), 39)
        assert runtimes.dtype == np.int64 and (runtimes > 1000).all()
        assert len({config.tobytes() for config in configs}) == 4
    record = read_json(tmp_path / "p00006.json")
    assert record["draws"][0] == {"number": 0, "noise": 0.0, "keep": 100, "beam": 1}
    both = np.minimum(record["first_pass"], record["second_pass"])
    assert np.array_equal(both, runtimes)
    assert read_json(tmp_path / "provenance.json")["source"].startswith("halide x86-64")
    before = (tmp_path / "p00006.npz").stat().st_mtime_ns
    collect_halide(tmp_path, 10, PROTOCOL, limits)
    assert (tmp_path / "p00006.npz").stat().st_mtime_ns == before


def test_a_pipeline_with_few_schedules_is_left_out_with_the_reason(small, tmp_path):
    limits = ScheduleLimits(schedules=3, draws=2, least=3)
    collect_halide(tmp_path, 10, PROTOCOL, limits)
    assert not (tmp_path / "p00006.npz").exists()
    reason = read_json(tmp_path / "p00006.refused.json")["reason"]
    assert reason.startswith(("1 of 3 distinct schedules", "2 of 3 distinct schedules"))


class Dying(Worker):
    """Its process dies of the second draw."""

    dies_of = Compile

    def send(self, request):
        super().send(request)
        if isinstance(request, self.dies_of) and request.draw.number == 1:
            self._process.kill()


class DyingOfSearch(Dying):
    dies_of = Search


@pytest.mark.parametrize(
    ("worker", "reason"),
    [
        (Dying, "the compiler or the schedule crashed with SIGKILL"),
        (DyingOfSearch, "the search crashed with SIGKILL"),
    ],
)
def test_a_draw_that_crashes_is_listed_and_the_others_are_measured(
    small, tmp_path, monkeypatch, worker, reason
):
    monkeypatch.setattr(collect, "Worker", worker)
    collect_halide(tmp_path, 10, PROTOCOL, ScheduleLimits(schedules=4, draws=12, least=2))
    record = read_json(tmp_path / "p00006.json")
    draw, message = record["refused"][0]
    assert draw["number"] == 1 and message == reason
    assert record["configurations"] == 4


def test_a_slow_or_wrong_schedule_is_not_measured():
    programs = Programs(RandomPipeline(TEN))
    first = programs.compile(Draw(0), slowest=10.0)
    assert isinstance(first, Compiled) and first.seconds > 0 and first.run_seconds > 0
    assert programs.compile(Draw(0), slowest=0.0) == Failed("runs longer than 0 s", "timeout")
    programs._expected = [values + 1.0 for values in programs._expected]
    wrong = programs.compile(Draw(0), slowest=10.0)
    assert isinstance(wrong, Failed) and "results differ by" in wrong.message
    assert wrong.failure == "wrong_result"


u = hl.Var("u")


def one_input(kind, function, *outputs):
    """A pipeline of an image of 512 numbers, and of a function of each."""
    taken, given = hl.ImageParam(kind, 1, "taken"), hl.Func("given")
    taken.set_estimates([(0, 512)])
    given[u] = function(taken[u])
    return Pipeline([given, *outputs], [(512,), *((512,) for _ in outputs)], [taken])


@pytest.mark.parametrize(
    ("kind", "function"),
    [
        (hl.Float(32), hl.sqrt),
        (hl.Float(32), lambda x: hl.log(x - x)),
        (hl.Float(32), lambda x: (x, -x)),
        (hl.Float(32), lambda x: x > 0.0),
        (hl.BFloat(16), lambda x: hl.cast(hl.BFloat(16), hl.cast(hl.Float(32), x) * 2.0)),
        (hl.Float(16), lambda x: x * x),
        (hl.Float(64), lambda x: x / x),
        (hl.Int(64), lambda x: x * x),
        (hl.UInt(1), lambda x: x),
        (hl.UInt(8), lambda x: hl.cast(hl.UInt(64), x)),
    ],
)
def test_results_of_every_type_are_compared_and_nan_is_equal_to_nan(kind, function):
    programs = Programs(lambda: one_input(kind, function))
    for _ in range(2):
        assert isinstance(programs.compile(Draw(0), slowest=10.0), Compiled)
    programs._expected = [
        np.where(np.isfinite(v), 2.0 * v + 1000.0, 0.0) for v in programs._expected
    ]
    assert programs.compile(Draw(0), slowest=10.0).failure == "wrong_result"


def test_an_error_of_the_harness_says_nothing_of_the_schedule(monkeypatch):
    programs = Programs(lambda: one_input(hl.Float(32), hl.sqrt))
    monkeypatch.setattr("hlorank_training.measuring.halide.worker._current", programs)
    monkeypatch.setattr(programs, "_results", lambda: 1 / 0)
    sent = []
    serve(SimpleNamespace(send=sent.append), Compile(Draw(0), 10.0))
    assert sent[0] == Failed("ZeroDivisionError: division by zero", None)


def test_a_pipeline_that_cannot_be_run_says_why_before_it_is_compiled():
    with pytest.raises(PipelineError, match="has 1 dimensions, but 2 extents"):
        Pipeline(one_input(hl.Float(32), hl.sqrt).outputs[0], (512, 4), [])
    with pytest.raises(PipelineError, match="the extents are 512, expected a list"):
        Pipeline(one_input(hl.Float(32), hl.sqrt).outputs[0], 512, [])
    taken, given = hl.ImageParam(hl.Float(32), 1, "taken"), hl.Func("given")
    given[u] = taken[u]
    with pytest.raises(PipelineError, match="input taken has no estimates"):
        Pipeline(given, (512,), [taken])
