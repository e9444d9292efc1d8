"""What a tuner does while its server is away."""

import warnings
from threading import Lock
from time import monotonic

from hlorank.checks.arguments import number, text
from hlorank.checks.errors import (
    AnswerError,
    DeadlineError,
    HlorankError,
    OverloadedError,
    UnavailableError,
    UnsupportedError,
)
from hlorank.wire import defaults

_AWAY = (UnavailableError, DeadlineError, OverloadedError, UnsupportedError, AnswerError)
"""What the next call would end with, too; other errors concern one call."""


class Fallback:
    """Says once that the host goes on in its own way, and when to ask the server again.

    All that one adapter asks shares one, so that a server that is away costs one deadline and one
    warning, whatever the number of kernels. Threads may share it.

    >>> fallback = Fallback("random search goes on")
    >>> experience = Experience(client, graph, convert, "my laptop", fallback=fallback)

    Args:
        way: What happens instead, such as ``TPE goes on``.
        pause: Seconds without calls after the server was away.
    """

    def __init__(self, way: str, *, pause: float = defaults.AWAY_PAUSE):
        self._way = text(way, "way")
        self._pause = number(pause, "pause", "seconds")
        self._turn = Lock()
        self._away_until = 0.0
        self._has_warned = False

    @property
    def is_away(self) -> bool:
        """Whether the server is not to be asked for now."""
        return monotonic() < self._away_until

    def lose(self, error: HlorankError) -> None:
        """Notes an error of a call; the first one is a warning."""
        # An error of one call alone, such as a space that is too large, is no reason to pause.
        if isinstance(error, _AWAY):
            self._away_until = monotonic() + self._pause
        self.warn(f"{error}; {self._way}")

    def warn(self, message: str) -> None:
        """Warns unless there was a warning."""
        with self._turn:  # threads of a tuner fail together
            is_first = not self._has_warned
            self._has_warned = True
        if is_first:
            warnings.warn(f"hlorank: {message}", stacklevel=4)
