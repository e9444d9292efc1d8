"""Measures candidates within the time of a search."""

from collections.abc import Sequence
from typing import Any

from hlorank_tune.budget import Budget
from hlorank_tune.compiler import Compiler
from hlorank_tune.measure.rounds import Protocol
from hlorank_tune.outcome import Outcome
from hlorank_tune.progress import Progress
from hlorank_tune.subject import Subject


class Measuring:
    """Asks the compiler for measurements, and learns how long they take."""

    def __init__(self, compiler: Compiler[Any], progress: Progress, budget: Budget):
        self._compiler = compiler
        self._progress = progress
        self.budget = budget
        """The time of the search."""

    def search(self, subject: Subject[Any], candidates: Sequence[Any]) -> list[Outcome]:
        """Measures candidates, which leaves time for the confirmation."""
        seconds = self.budget.for_search()
        return self._timed(subject, candidates, self._compiler.search, seconds, "")

    def confirm(self, subject: Subject[Any], candidates: Sequence[Any], part: str) -> list[Outcome]:
        """Measures candidates longer; ``part`` says which part of the confirmation this is."""
        seconds = self.budget.left()
        return self._timed(subject, candidates, self._compiler.confirm, seconds, part)

    def _timed(
        self,
        subject: Subject[Any],
        candidates: Sequence[Any],
        protocol: Protocol,
        seconds: float,
        part: str,
    ) -> list[Outcome]:
        """Measures candidates in about ``seconds`` at most; ``part`` is for the display."""
        begin = self.budget.spent()
        own = [m.outcome.nanoseconds or 0 for m in self._progress.run.of(subject.name)[:1]]
        patient = self.budget.patient(protocol, (len(candidates) + 1) * sum(own) / 1e9)
        outcomes = self._compiler.measure(
            subject, candidates, patient, seconds, lambda phase: self._progress.phase(part + phase)
        )
        self.budget.took(len(candidates), self.budget.spent() - begin)
        return outcomes
