"""A search for a faster schedule, and its result."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from hlorank.halide.drawing import GREEDY
from hlorank.halide.schedule import Draw, Schedule


@dataclass(frozen=True)
class ScheduleSettings:
    """Limits of a search."""

    draws: int = 32
    """Schedules that are drawn, the greedy one included; some repeat others."""
    measurements: int = 5
    """First schedules of the ranking that are measured, beside the greedy one."""
    draw_seconds: float = 30.0
    """How long a draw may take; more if the greedy one takes long itself."""
    beam_seconds: float = 8.0
    """A wider beam is only drawn if it is expected to take less."""
    seed: int = 0
    """Of the order without a model."""


@dataclass
class Candidate:
    """A schedule that was drawn, or a draw that failed."""

    draw: Draw
    schedule: Schedule | None = None
    score: float | None = None
    """The model's; lower is predicted faster."""
    nanoseconds: float | None = None
    compile_seconds: float | None = None
    """Processor time; None if it was not compiled."""
    problem: str = ""
    """Why it was not drawn, or does not run."""
    failure: str | None = None
    """What kind of problem that is: one of ``hlorank.adapt.FAILURES``."""

    @property
    def is_greedy(self) -> bool:
        """Whether this is the autoscheduler's own choice."""
        return self.draw == GREEDY


@dataclass
class ScheduleRun:
    """What was drawn for a pipeline, ranked and measured."""

    name: str
    candidates: list[Candidate] = field(default_factory=list)
    """Distinct schedules in the order of the ranking, then draws that failed."""
    repeats: int = 0
    """Draws that gave an earlier schedule again."""
    model: str = ""
    """The model version that ranked; empty without one."""
    unit: str | None = None
    """Of the scores."""
    noise: float = 0.0
    """Relative difference of the run times of two passes, median over schedules."""
    pipeline: str = ""
    """Where the pipeline comes from, such as ``blur.py:blur``."""
    kept: str = ""
    """What became of the measurements at the server; empty without a server."""
    seconds: dict[str, float] = field(default_factory=dict)
    """How long each step took: drawing, ranking, compiling and measuring."""

    @property
    def ranked(self) -> Sequence[Candidate]:
        """The schedules that were drawn, predicted fastest first."""
        return [candidate for candidate in self.candidates if candidate.schedule is not None]

    @property
    def greedy(self) -> Candidate | None:
        """The greedy schedule; None if it could not be drawn."""
        return next((one for one in self.ranked if one.is_greedy), None)

    @property
    def fastest(self) -> Candidate | None:
        """The fastest schedule that was measured; None if none works."""
        measured = [one for one in self.candidates if one.nanoseconds is not None]
        return min(measured, key=lambda one: one.nanoseconds, default=None)

    @property
    def gain(self) -> float:
        """Time of the greedy schedule over that of the fastest; infinite if only that runs."""
        if self.fastest is None:
            return 1.0
        if self.greedy is None or self.greedy.nanoseconds is None:
            return float("inf")
        return self.greedy.nanoseconds / self.fastest.nanoseconds

    @property
    def is_faster(self) -> bool:
        """Whether the fastest schedule is faster than the greedy one by more than the noise."""
        return self.gain > 1 + self.noise
