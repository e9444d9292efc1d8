"""Random Halide pipelines, schedules of the autoscheduler, and their collection."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("scipy", reason="scipy is not installed")
pytest.importorskip("halide", reason="halide is not installed")

from hlorank_tune.measure.atomic_files import read_json
from hlorank_tune.measure.rounds import Protocol
from hlorank_tune.measure.workers import Worker

from hlorank_training.measuring.halide import collect
from hlorank_training.measuring.halide.adams2019 import (
    Draw,
    apply_schedule,
    shipped_weights,
    stage_graph,
)
from hlorank_training.measuring.halide.collect import ScheduleLimits, collect_halide
from hlorank_training.measuring.halide.features import CONFIG_FEATURES, FEATURE_SET, NODE_FEATURES
from hlorank_training.measuring.halide.pipelines import RandomPipeline, random_pipeline
from hlorank_training.measuring.halide.schedules import Compile, Compiled, Failed, Search
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
    one, other = (
        apply_schedule(random_pipeline(TEN).pipeline, Draw(n, noise=n * 0.8)) for n in (0, 1)
    )
    stages = len(one.stages)
    assert one.node_features.shape == (stages, 287) and one.config_features.shape == (stages, 39)
    assert np.array_equal(one.node_features, other.node_features)
    assert not np.array_equal(one.config_features, other.config_features)
    assert np.array_equal(one.edges, other.edges) and one.edges.max() < stages
    assert set(one.edges[:, 0]) | set(one.edges[:, 1]) == set(range(stages)), "all are connected"
    assert one.predicted_milliseconds > 0 and "vectorize" in one.source + other.source


def test_small_pipelines_have_seeds_of_their_own():
    assert [collect._seed(number) for number in range(8)] == [0, *range(10_000, 10_005), 1, 10_005]
    sizes = [
        len(apply_schedule(random_pipeline(seed).pipeline, Draw(0)).stages)
        for seed in (10_006, TEN)
    ]
    assert sizes == [4, 10]


def test_equal_draws_are_equal_schedules():
    draw = Draw(5, noise=0.4, keep=50)
    one, other = (apply_schedule(random_pipeline(TEN).pipeline, draw) for _ in range(2))
    assert np.array_equal(one.config_features, other.config_features)


def test_the_weights_are_those_of_the_cost_model():
    assert [weights.size for weights in shipped_weights()] == [2240, 8, 936, 24, 1024, 32]
    assert all(np.isfinite(weights).all() and weights.any() for weights in shipped_weights())


def test_pipelines_differ_and_are_of_a_wanted_size():
    sizes = [
        len(apply_schedule(random_pipeline(seed).pipeline, Draw(0)).stages) for seed in (2, 5, TEN)
    ]
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


def test_an_error_of_the_harness_says_nothing_of_the_schedule(monkeypatch):
    programs = Programs(RandomPipeline(TEN))
    monkeypatch.setattr("hlorank_training.measuring.halide.worker._current", programs)
    monkeypatch.setattr(programs, "_results", lambda: 1 / 0)
    sent = []
    serve(SimpleNamespace(send=sent.append), Compile(Draw(0), 10.0))
    assert sent[0] == Failed("ZeroDivisionError: division by zero", None)
