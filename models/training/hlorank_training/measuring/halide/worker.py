"""Schedules, compiles and measures one pipeline in a process of its own, which may die.

``serve`` answers the requests of this module.
"""

import time
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from io import StringIO
from multiprocessing.connection import Connection
from typing import Any

import halide as hl
import numpy as np
from hlorank.measure.rounds import Protocol, Timing, measure

from hlorank_training.measuring.halide.adams2019 import (
    Draw,
    Schedule,
    apply_schedule,
    printed,
)
from hlorank_training.measuring.halide.random_pipelines import Pipeline, random_pipeline

SLOWEST = 0.15
"""Maximum seconds of a run; slower schedules are not measured."""
_MARGIN = 16
"""Elements around every input: vectors that are longer than a dimension read beyond it."""
_RANDOM = 65_521
"""Random numbers of an input, which repeat: a prime, so that rows differ."""
_TOLERANCE = 1e-2
"""Maximum difference of results, relative to the largest value."""


@dataclass(frozen=True)
class Failed:
    """Why a draw is not measured."""

    message: str


@dataclass(frozen=True)
class Compiled:
    """A schedule that runs and computes what the others do."""

    schedule: Schedule
    digest: str
    """Of its features, which schedules that differ have in common only if they are equal."""
    search_seconds: float
    compile_seconds: float


@dataclass(frozen=True)
class Compile:
    """Asks to draw a schedule of the pipeline with this seed, and to compile and check it."""

    seed: int
    draw: Draw

    def answer(self) -> Compiled | Failed:
        """Begins with another pipeline if the seed is new."""
        global _current
        if _current is None or _current.seed != self.seed:
            _current = _Programs(self.seed)
        return _current.add(self.draw)


@dataclass(frozen=True)
class Measure:
    """Asks to measure the compiled schedules beside each other."""

    protocol: Protocol

    def answer(self) -> Timing | Failed:
        """Returns run times in the order of compilation."""
        if _current is None:
            return Failed("no schedule was compiled in this process")
        return measure(list(_current.runs.values()), self.protocol)


class _Programs:
    """The compiled schedules of one pipeline."""

    def __init__(self, seed: int):
        self.seed = seed
        self.runs: dict[str, Callable[[], Any]] = {}
        pipeline = random_pipeline(seed)
        random = np.random.default_rng(0)
        self._inputs = [_input(shape, random) for shape in pipeline.input_shapes]
        self._output = hl.Buffer(hl.Float(32), list(pipeline.output_shape))
        self._expected: np.ndarray | None = None

    def add(self, draw: Draw) -> Compiled | Failed:
        pipeline, begin = random_pipeline(self.seed), time.perf_counter()
        schedule = apply_schedule(pipeline, draw)
        digest = sha256(schedule.config_features.tobytes()).hexdigest()
        if digest in self.runs:
            return Failed("repeats an earlier schedule")
        searched = time.perf_counter()
        run = self._compiled(pipeline)
        compiled = time.perf_counter()
        if problem := self._check(run):
            return Failed(problem)
        self.runs[digest] = run
        return Compiled(schedule, digest, searched - begin, compiled - searched)

    def _compiled(self, pipeline: Pipeline) -> Callable[[], Any]:
        # Halide prints what a schedule could do better, also to Python's standard output.
        with printed(), redirect_stdout(StringIO()):
            program = pipeline.pipeline.compile_to_callable(pipeline.inputs, hl.get_host_target())
        return partial(program, *self._inputs, self._output)

    def _check(self, run: Callable[[], Any]) -> str:
        begin = time.perf_counter()
        run()
        if time.perf_counter() - begin > SLOWEST:
            begin = time.perf_counter()
            run()
            if time.perf_counter() - begin > SLOWEST:
                return f"runs longer than {SLOWEST:g} s"
        result = np.asarray(self._output).copy()
        if self._expected is None:
            self._expected = result
        largest = max(1.0, float(np.abs(self._expected).max()))
        difference = float(np.abs(result - self._expected).max()) / largest
        # Not "greater than", since NaN is wrong too.
        if not difference <= _TOLERANCE:
            return f"the results differ by {difference:.1e} of the largest value"
        return ""


def _input(shape: tuple[int, ...], random: np.random.Generator) -> hl.Buffer:
    buffer = hl.Buffer(hl.Float(32), [extent + 2 * _MARGIN for extent in shape])
    buffer.set_min([-_MARGIN] * len(shape))
    values = np.asarray(buffer)
    values[...] = np.resize(random.standard_normal(_RANDOM), values.shape)
    return buffer


_current: _Programs | None = None


def serve(connection: Connection, request: Compile | Measure) -> None:
    """Answers one request."""
    answer: Any
    try:
        answer = request.answer()
    # Halide and the autoscheduler raise errors of several types.
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        answer = Failed(lines[0][:300])
    connection.send(answer)
