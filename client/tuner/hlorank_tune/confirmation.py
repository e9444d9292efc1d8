"""The end of a search: the best candidates are measured again, and one of them wins."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from math import inf
from time import monotonic
from typing import Any

from hlorank_tune.compiler import Compiler
from hlorank_tune.measure.rounds import Protocol
from hlorank_tune.run import PARTS, Measurement, Progress
from hlorank_tune.subject import Outcome, Subject

CONFIRMED = 3
"""Number of the fastest candidates that are measured again, longer, with the program itself."""
_RESERVED = 0.25
"""Maximum share of the time that is reserved for the confirmation."""
_PATIENCE = 0.1
"""Maximum share of the time left that one measurement waits for a quiet machine."""


class Budget:
    """The time of a search, which includes the time before it was stopped and continued."""

    def __init__(
        self, limit: float | None, spent: float = 0.0, clock: Callable[[], float] = monotonic
    ):
        """``limit`` and ``spent`` are seconds; None is no limit."""
        self._limit = inf if limit is None else limit
        self._clock = clock
        self._begin = clock() - spent
        self._per_candidate = 0.0

    def spent(self) -> float:
        """Returns the seconds since the search began."""
        return self._clock() - self._begin

    def left(self) -> float:
        """Returns the seconds until the limit."""
        return max(0.0, self._limit - self.spent())

    def took(self, candidates: int, seconds: float) -> None:
        """Takes the duration of a measurement, from which later ones are estimated."""
        self._per_candidate = seconds / candidates

    def for_search(self) -> float:
        """Returns the seconds left before the confirmation has to start."""
        if self._limit == inf:
            return inf
        confirmation = PARTS * (CONFIRMED + 2) * self._per_candidate
        return max(0.0, self.left() - min(_RESERVED * self._limit, confirmation))

    def fits(self, candidates: int) -> int:
        """Returns how many of the candidates can be measured before the confirmation."""
        seconds = self.for_search()
        if seconds == inf or candidates * self._per_candidate < seconds:
            return candidates
        return int(seconds / self._per_candidate) if self._per_candidate else 0

    def patient(self, protocol: Protocol, round_seconds: float) -> Protocol:
        """Limits the tries of a protocol, so that waiting leaves time for other measurements.

        ``round_seconds`` is the expected duration of a round.
        """
        if self._limit == inf:
            return protocol
        stretch = max(protocol.stretch_seconds, round_seconds)
        tries = int(_PATIENCE * self.left() / (2 * stretch))
        return replace(protocol, tries=min(protocol.tries, tries))


class Measuring:
    """Asks the compiler for measurements, and learns how long they take."""

    def __init__(self, compiler: Compiler[Any], progress: Progress, budget: Budget):
        self._compiler = compiler
        self._progress = progress
        self.budget = budget
        """The time of the search."""

    def __call__(
        self, subject: Subject[Any], candidates: Sequence[Any], part: str | None = None
    ) -> list[Outcome]:
        """Measures candidates, which leaves time for the confirmation.

        ``part`` says which part of the confirmation this is, which measures longer.
        """
        seconds = self.budget.for_search() if part is None else self.budget.left()
        protocol = self._compiler.search if part is None else self._compiler.confirm
        begin = self.budget.spent()
        own = [m.outcome.nanoseconds or 0 for m in self._progress.run.of(subject.name)[:1]]
        patient = self.budget.patient(protocol, (len(candidates) + 1) * sum(own) / 1e9)

        def report(phase: str) -> None:
            self._progress.show((part or "") + phase)

        outcomes = self._compiler.measure(subject, candidates, patient, seconds, report)
        self.budget.took(len(candidates), self.budget.spent() - begin)
        return outcomes


class Confirmation:
    """Measures what a search found again, and chooses the winner."""

    def __init__(self, compiler: Compiler[Any], progress: Progress, measuring: Measuring):
        self._compiler = compiler
        self._progress = progress
        self._measuring = measuring

    def run(self) -> None:
        """Measures the fastest, the reference and the default again; chooses the winner.

        Stops early if the time is over, but not before the first part. The reference wins if the
        difference is within the noise.
        """
        run = self._progress.run
        whole = self._compiler.whole
        # A search that was stopped here has measured the whole program already.
        if not run.of():
            combined = list(self._compiler.combined(run, self._progress.show))
            self._progress.leave_alone(self._compiler.left_alone())
            if combined:
                outcomes = self._measuring(whole, combined, "confirming: ")
                for candidate, outcome in zip(combined, outcomes, strict=True):
                    self._progress.add(whole, candidate, outcome)
        finalists = self._finalists()
        if len(finalists) > 1:
            # Parts that are spread over time tell drift of the machine from a gain.
            took = 0.0
            while len(run.parts) < self._compiler.parts and (
                not run.parts or self._measuring.budget.left() > took
            ):
                begin = self._measuring.budget.spent()
                part = f"confirming, part {len(run.parts) + 1} of {PARTS}: "
                candidates = [whole.read(measurement.candidate) for measurement in finalists]
                outcomes = self._measuring(whole, candidates, part)
                confirmed = [
                    {"candidate": measurement.candidate, **asdict(outcome)}
                    for measurement, outcome in zip(finalists, outcomes, strict=True)
                ]
                self._progress.write({"confirmed": confirmed})
                took = self._measuring.budget.spent() - begin
        measured = {m.number if m.candidate else 0: m.outcome for m in run.of()}
        best, noise = winner(run.confirmed or measured)
        row = {"best": run.measurements[best].candidate if best else {}, "noise": noise}
        reason = "" if best else self._compiler.reason()
        self._progress.write(row | ({"reason": reason} if reason else {}))
        self._progress.show("")

    def _finalists(self) -> list[Measurement]:
        """Returns the reference, the default, and the fastest candidates."""
        run = self._progress.run
        if run.parts:
            return [run.measurements[number] for number in run.parts[0]]
        working = [m for m in run.fastest() if m.candidate]
        default = [m for m in working if m.candidate == run.default]
        chosen = {m.number: m for m in [*run.of()[:1], *default, *working[:CONFIRMED]]}
        return list(chosen.values())


def winner(confirmed: dict[int, Outcome]) -> tuple[int, float]:
    """Returns the number of the winner, and the noise; 0, the reference, wins within it."""
    working = {n: o for n, o in confirmed.items() if o.nanoseconds}
    if not working:
        return 0, 0.0
    best = min(working, key=lambda n: (working[n].ratio, working[n].nanoseconds))
    own = confirmed.get(0)
    if own is None or not own.nanoseconds:
        # There is nothing to compare with.
        return best, 0.0
    # The reference was measured against itself, so its ratio differs from 1 by noise alone.
    noise = max(own.noise or 0.0, abs(own.ratio - 1))
    return (best if working[best].ratio < 1 - noise else 0), noise
