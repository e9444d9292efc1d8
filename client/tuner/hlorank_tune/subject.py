"""What is tuned by itself, how its candidates are proposed, and what becomes of them."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from hlorank import Configurations, Graph, HlorankError
from hlorank.checks.arguments import U64, number, whole_number, wrong
from hlorank_tune.measure.host import Measured

MEASURED = "measured"


class ProgramError(HlorankError):
    """A program that does not compile, or does not run as it is."""


@dataclass(frozen=True)
class Outcome:
    """The result of one candidate."""

    status: str
    """``measured``, ``compile failed``, ``crashed``, ``timed out``, ``wrong result``, or ``failed``
    if it is not certain that the candidate did"""
    nanoseconds: float | None = None
    reference: float | None = None
    """Nanoseconds of the reference, measured in the same rounds."""
    noise: float | None = None
    """Relative difference between two passes of the batch."""
    message: str = ""
    failure: str | None = None
    """What a server keeps of it, one of ``hlorank.FAILURES``; None if the candidate works, or
    if it is not certain that the candidate failed and not the harness"""

    @property
    def ratio(self) -> float:
        """Run time divided by the reference's; infinite if one of them does not work."""
        return self.nanoseconds / self.reference if self.nanoseconds and self.reference else np.inf


_STATUS = {
    "compile": "compile failed",
    "crash": "crashed",
    "timeout": "timed out",
    "wrong_result": "wrong result",
    None: "failed",
}


def outcomes_of(measured: Measured, noise: float | None = None) -> list[Outcome]:
    """Returns the outcomes of measured programs, of which the first is the reference.

    ``noise`` is by default the median difference between two passes.
    """
    times = np.round(measured.nanoseconds, 1).tolist()
    reference = times[0]
    noise = float(np.nanmedian(measured.noise)) if noise is None else noise
    return [
        Outcome(_STATUS[failure], None, reference, None, error, failure)
        if error
        else Outcome(MEASURED, own, reference, noise)
        for own, error, failure in zip(times, measured.errors, measured.failures, strict=True)
    ]


@dataclass(frozen=True)
class Settings:
    """Settings of a search; a compiler has its own defaults."""

    with_model: bool = True
    measurements: int = 24
    """Maximum number of measured candidates of a subject; a compiler says which of them count. With
    0, only the program and the default are measured."""
    seconds: float | None = None
    """Maximum duration, the confirmation included; None for no limit."""
    predictions: int = 2048
    """Candidates that the model ranks before each round of measurements."""
    top_k: int = 4
    """Best of those, which are measured in a round."""
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuses what a search could not end with. Raises ArgumentError."""
        whole_number(self.measurements, "measurements")
        whole_number(self.predictions, "predictions", 1)
        whole_number(self.top_k, "top_k", 1)
        whole_number(self.seed, "seed", most=U64)
        expected = "seconds from 0, or None"
        if self.seconds is not None and number(self.seconds, "seconds", expected) < 0:
            raise wrong("seconds", self.seconds, expected)


C = TypeVar("C")


class Strategy(Protocol[C]):
    """Proposes the candidates of one search.

    Costs are predictions if a model scores, and ratios of measured times without a model. Lower is
    better; the cost of a candidate that does not work is infinite.
    """

    def ask(self) -> Sequence[C]:
        """Returns the next candidates to evaluate; none if the space is exhausted."""
        ...

    def update(self, candidates: Sequence[C], costs: np.ndarray) -> None:
        """Takes the costs [candidates] of candidates that ``ask`` returned."""
        ...


class InOrder(Generic[C]):
    """The strategy that proposes given candidates one after the other."""

    def __init__(self, candidates: list[C], batch: int):
        """``batch`` is how many ``ask`` returns."""
        self._left = candidates
        self._batch = batch

    def ask(self) -> list[C]:
        """Returns the next candidates."""
        batch = self._left[: self._batch]
        self._left = self._left[self._batch :]
        return batch

    def update(self, candidates: Sequence[C], costs: np.ndarray) -> None:
        """Ignores the costs."""


class Subject(ABC, Generic[C]):
    """What is tuned by itself: a program, or a part of one, with its candidates."""

    name: str = ""
    """Of a part; empty for the whole program."""
    graph: Graph | None
    """What a model ranks candidates of; None for a subject that is searched without one."""
    reference: C
    """The candidate beside which all others are measured."""
    default: C
    """The candidate of the compiler's own choices; may be the reference."""
    calls: int = 1
    """How often the program runs it."""
    is_shared: bool = False
    """Whether its candidates are those of other programs, too: a search begins with the fastest of
    those that the server knows, and goes on by measurements alone."""
    predicted_at_once: int = 64
    """Candidates that a strategy proposes to the model in a step."""

    @abstractmethod
    def strategy(
        self, settings: Settings, random: np.random.Generator, batch: int, steps: int, start: list
    ) -> Strategy[C]:
        """Returns a new strategy.

        Args:
            settings: Of the search.
            random: Source of random choices.
            batch: Candidates that ``ask`` should return.
            steps: How often it is expected to be called.
            start: The reference and the fastest measured candidates.
        """

    @abstractmethod
    def configurations(self, candidates: Sequence[C]) -> Configurations:
        """Converts candidates to the configurations that the model ranks."""

    def candidates(self, configurations: Configurations) -> Sequence[C | None]:
        """Converts configurations back; None for each that is not of the graph."""
        return [None] * len(configurations)

    def is_ranked(self, candidate: C) -> bool:
        """Returns whether a candidate is a configuration that a model can rank."""
        return True

    @abstractmethod
    def key(self, candidate: C) -> Hashable:
        """Returns what equal candidates have in common."""

    @abstractmethod
    def written(self, candidate: C) -> Any:
        """Converts a candidate to JSON, for people and for ``read``; ``{}`` is the reference."""

    @abstractmethod
    def read(self, written: Any) -> C:
        """Converts a candidate back from JSON."""
