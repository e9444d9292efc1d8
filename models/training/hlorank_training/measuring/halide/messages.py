"""What is asked of the process that draws, compiles and measures schedules, and its answers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hlorank_tune.measure.rounds import Protocol

from hlorank_training.measuring.halide.schedule import Draw, Schedule


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
