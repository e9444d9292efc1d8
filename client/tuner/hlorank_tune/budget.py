"""The time that a search may take, and what fits into the rest of it."""

from collections.abc import Callable
from dataclasses import replace
from math import inf
from time import monotonic

from hlorank_tune.measure.rounds import Protocol

PARTS = 3
"""Parts of the confirmation, each of which measures the same programs again."""
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
