"""What a server keeps of failures: only what a candidate did, never what befell the harness."""

from types import SimpleNamespace

import pytest

from hlorank import Experience, Graph, Kept, Result, Tiles
from hlorank_tune.measure.fusion.compilation import Compiling
from hlorank_tune.server import _result_of
from hlorank_tune.subject import Outcome


class Recording:
    """A client that keeps the failures that are reported."""

    def __init__(self):
        self.failures = []

    def report_measurements(self, graph, measurements, **_):
        self.failures += measurements.failures
        return SimpleNamespace(accepted=len(measurements.seconds), known=0)


def test_a_failure_of_the_harness_is_neither_learned_from_nor_reported():
    client = Recording()
    graph = Graph.from_hlo_text("HloModule m", task="tile")
    experience = Experience(client, graph, lambda tiles: Tiles(output_bounds=tiles), Kept("a"))
    results = [Result(0.5), Result(), Result(failure="wrong_result"), Result(failure=None)]
    experience.add([[1], [2], [3], [4]], results)
    assert client.failures == [None, "wrong_result"]
    assert len(experience.measured) == 2


def test_errors_of_python_are_not_those_of_the_compiler():
    says = Compiling([]).failure
    assert says(RuntimeError("INTERNAL: no kernel"), is_loaded=False) == "compile"
    assert says(RuntimeError("INTERNAL: no kernel"), is_loaded=True) == "crash"
    for error in (TypeError(), MemoryError(), RecursionError(), NotImplementedError(), OSError()):
        assert says(error, is_loaded=True) is None


def test_an_outcome_is_reported_as_what_is_certain_of_it():
    assert _result_of(Outcome("timed out", failure="timeout")) == Result(failure="timeout")
    for status in ("timed out", "crashed", "failed"):
        assert not _result_of(Outcome(status)).is_measurement
    assert _result_of(Outcome("measured", 5)).seconds == pytest.approx(5e-9)
