"""The schedules of one pipeline, which a process draws, compiles and measures.

``Schedules`` asks the process, whose module is ``worker``, with the messages here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hlorank import HlorankError
from hlorank_tune.measure.rounds import Protocol, Timing
from hlorank_tune.measure.workers import Worker, WorkerError

from hlorank_training.measuring.halide.adams2019 import Draw, Schedule

WORKER = "hlorank_training.measuring.halide.worker"
PROTOCOL = Protocol(warmups=1, rounds=10, most_rounds=40, seconds=1.0, tries=4, clock="process")
"""How schedules are measured: by processor time, since they are for one thread."""
_BEGIN_SECONDS = 60.0
_AGAIN_SECONDS = 600.0
"""How long drawing and compiling a schedule that worked before may take."""
_MEASURE_SECONDS = 1800.0


@dataclass(frozen=True)
class Begin:
    """Asks to forget earlier schedules and to build a pipeline."""

    build: Callable[[], Any]
    """Returns a new ``Pipeline`` at every call, the same one in every process."""


@dataclass(frozen=True)
class Search:
    """Asks to draw a schedule; the answer is ``Searched``."""

    draw: Draw


@dataclass(frozen=True)
class Searched:
    """A schedule that was drawn."""

    schedule: Schedule
    seconds: float
    """Processor time of the search."""


@dataclass(frozen=True)
class Compile:
    """Asks to compile a schedule and to compare its results; the answer is ``Compiled``."""

    draw: Draw
    slowest: float
    """Maximum seconds of a run."""


@dataclass(frozen=True)
class Compiled:
    """A schedule that runs, and computes what the first compiled one does."""

    seconds: float
    """Processor time of the compiler."""
    run_seconds: float
    """Processor time of a run."""


@dataclass(frozen=True)
class Measure:
    """Asks to measure the compiled schedules in the same rounds; the answer is a ``Timing``."""

    protocol: Protocol


@dataclass(frozen=True)
class Failed:
    """The answer to a request that failed."""

    message: str
    failure: str | None = None
    """What kind of failure of the schedule that is: one of ``hlorank.FAILURES``; None if the
    harness failed, which says nothing of the schedule."""


class ScheduleError(HlorankError):
    """A pipeline that cannot be built or measured."""


class Schedules:
    """Asks the process, and starts it again if it dies of a schedule."""

    def __init__(self, worker: Worker, build: Callable[[], Any], seconds: float):
        """``seconds`` is the maximum duration of compiling with the first runs.

        Raises:
            ScheduleError: if the pipeline cannot be built.
        """
        self._worker = worker
        self._build = build
        self._seconds = seconds
        self._compiled: list[Compile] = []
        self._begin()

    def search(self, draw: Draw, seconds: float) -> Searched | Failed:
        """Draws a schedule; it fails after ``seconds``."""
        return self._ask(Search(draw), seconds, "the search")

    def compile(self, draw: Draw, slowest: float) -> Compiled | Failed:
        """Compiles and checks a schedule; the first one is the reference for results."""
        request = Compile(draw, slowest)
        answer = self._ask(request, self._seconds, "the compiler or the schedule")
        if isinstance(answer, Compiled):
            self._compiled.append(request)
        return answer

    def measure(self, protocol: Protocol) -> Timing:
        """Measures what was compiled, in this order.

        Raises:
            ScheduleError: if the process dies.
        """
        try:
            self._worker.send(Measure(protocol))
            answer = self._worker.receive(_MEASURE_SECONDS)
        except WorkerError as error:
            raise ScheduleError(f"the measurement {error}") from error
        if isinstance(answer, Failed):
            raise ScheduleError(answer.message)
        return answer

    def _begin(self) -> None:
        try:
            self._worker.send(Begin(self._build))
            failed = self._worker.receive(_BEGIN_SECONDS)
        except WorkerError as error:
            raise ScheduleError(f"the pipeline {error}") from error
        if failed is not None:
            raise ScheduleError(failed.message)

    def _ask(self, request: Search | Compile, seconds: float, what: str) -> Any:
        try:
            self._worker.send(request)
            return self._worker.receive(seconds)
        except WorkerError as error:
            self._restart()
            return Failed(f"{what} {error}", error.failure)

    def _restart(self) -> None:
        """Gives a new process the schedules of the old one, which draws always give again."""
        self._begin()
        for request in self._compiled:
            try:
                self._worker.send(request)
                answer = self._worker.receive(_AGAIN_SECONDS)
            except WorkerError as error:
                raise ScheduleError(f"a schedule that compiled before {error}") from error
            if isinstance(answer, Failed):
                raise ScheduleError(f"a schedule that compiled before: {answer.message}")
