"""Draws, compiles and measures schedules of one pipeline in a process of its own, which may die.

``serve`` answers the requests of ``schedules``.
"""

import time
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from multiprocessing.connection import Connection
from typing import Any

import halide as hl
import numpy as np
from hlorank import HlorankError
from hlorank_tune.measure.results import NOT_REPEATABLE, difference
from hlorank_tune.measure.rounds import Protocol, Timing, measure

from hlorank_training.measuring.halide.adams2019 import Draw, apply_schedule, printed
from hlorank_training.measuring.halide.pipelines import Pipeline
from hlorank_training.measuring.halide.schedules import (
    Begin,
    Compile,
    Compiled,
    Failed,
    Measure,
    Search,
    Searched,
)

_TOLERANCE = 1e-2
"""Maximum difference of results, relative to the largest value."""


class Programs:
    """The schedules of one pipeline."""

    def __init__(self, build: Callable[[], Pipeline]):
        pipeline = build()
        self.build = build
        self._inputs = pipeline.input_values()
        self._output = pipeline.result()
        self._scheduled: dict[Draw, Pipeline] = {}
        self._runs: list[Callable[[], Any]] = []
        self._expected: list[np.ndarray] = []

    def search(self, draw: Draw) -> Searched:
        """Draws a schedule."""
        pipeline = self.build()
        begin = time.process_time()
        schedule = apply_schedule(pipeline.pipeline, draw)
        self._scheduled[draw] = pipeline
        return Searched(schedule, time.process_time() - begin)

    def compile(self, draw: Draw, slowest: float) -> Compiled | Failed:
        """Compiles a schedule, and checks its results and its run time."""
        if draw not in self._scheduled:
            self.search(draw)
        pipeline = self._scheduled[draw]
        begin = time.process_time()
        # Halide prints what a schedule could do better, also to Python's standard output.
        with printed(), redirect_stdout(StringIO()):
            program = pipeline.pipeline.compile_to_callable(
                pipeline.arguments, hl.get_host_target()
            )
        seconds = time.process_time() - begin
        run = partial(program, *self._inputs, self._output)
        try:
            run_seconds = _run_seconds(run, slowest)
        except hl.HalideError as error:
            return _failed(error, "crash")
        if run_seconds > slowest:
            return Failed(f"runs longer than {slowest:.3g} s", "timeout")
        if not self._expected:
            self._expected = self._results()
            run()
            if self._difference():
                return Failed(NOT_REPEATABLE)
        if problem := self._difference():
            return Failed(problem, "wrong_result")
        self._runs.append(run)
        return Compiled(seconds, run_seconds)

    def measure(self, protocol: Protocol) -> Timing:
        """Measures the compiled schedules, in the order of compiling."""
        return measure(self._runs, protocol)

    def _difference(self) -> str:
        """Says how the results differ from those of the first schedule; empty if they agree."""
        return difference(self._expected, self._results(), _TOLERANCE)

    def _results(self) -> list[np.ndarray]:
        return [np.array(self._output)]


def _run_seconds(run: Callable[[], Any], slowest: float) -> float:
    """Returns the processor time of a run, of the second one if the first is slow."""
    seconds = 0.0
    for _ in range(2):
        begin = time.process_time()
        run()
        seconds = time.process_time() - begin
        if seconds <= slowest:
            break
    return seconds


_current: Programs | None = None


def serve(connection: Connection, request: Begin | Search | Compile | Measure) -> None:
    """Answers one request."""
    try:
        answer = _answer(request)
    except hl.HalideError as error:
        answer = _failed(error, "compile")
    # The user's function and this harness raise errors of several types.
    except Exception as error:
        answer = _failed(error, None)
    connection.send(answer)


def _failed(error: Exception, failure: str | None) -> Failed:
    lines = str(error).strip().splitlines() or [""]
    is_told = isinstance(error, hl.HalideError | HlorankError)
    name = "" if is_told else f"{type(error).__name__}: "
    return Failed((name + lines[0])[:300], failure)


def _answer(request: Begin | Search | Compile | Measure) -> Any:
    global _current
    if isinstance(request, Begin):
        _current = None
        _current = Programs(request.build)
        return None
    if _current is None:
        return Failed("there is no pipeline")
    match request:
        case Search(draw):
            return _current.search(draw)
        case Compile(draw, slowest):
            return _current.compile(draw, slowest)
        case Measure(protocol):
            return _current.measure(protocol)
