"""What a tuner does while its server is away."""

import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from time import monotonic

from hlorank.checks.arguments import number, several, text, wrong
from hlorank.checks.errors import (
    AnswerError,
    ArgumentError,
    DeadlineError,
    HandshakeError,
    HlorankError,
    OverloadedError,
    UnavailableError,
    UnsupportedError,
    is_no_store,
)
from hlorank.wire import defaults

_AWAY = (UnavailableError, DeadlineError, OverloadedError, UnsupportedError, AnswerError)
"""What the next call would end with, too; other errors concern one call."""


_PAUSE = "seconds from 0"
_OFF = (
    "the server keeps no measurements, so no later run or user profits from these: start it with "
    "--measurements"
)


def is_worth_waiting(error: HlorankError) -> bool:
    """Returns whether the same server may answer the same call later."""
    absent = isinstance(error, UnavailableError | DeadlineError | OverloadedError)
    return absent and not isinstance(error, HandshakeError)


class Fallback:
    """Says once that the host goes on in its own way, and when to ask the server again.

    It also says once if the server keeps no measurements.

    All that one adapter asks shares one, so that a server that is away costs one deadline and one
    warning, whatever the number of kernels. Threads may share it.

    >>> fallback = Fallback("random search goes on")
    >>> experience = Experience(client, graph, convert, "my laptop", fallback=fallback)

    Args:
        way: What happens instead, such as ``TPE goes on``.
        pause: Seconds without calls after the server was away.
        needs: The packages that it imports. One that is missing is an error now, not once the
            server is away.

    Raises:
        ArgumentError: if an argument cannot be used, or a package is not installed.
    """

    def __init__(self, way: str, *, pause: float = defaults.AWAY_PAUSE, needs: Sequence[str] = ()):
        self._way = text(way, "way")
        for package in several(needs, "needs", "packages"):
            if find_spec(text(package, "needs")) is None:
                raise ArgumentError(
                    f"the fallback needs {package}, which is not installed: pip install {package}"
                )
        self._pause = number(pause, "pause", _PAUSE)
        if self._pause < 0:
            raise wrong("pause", pause, _PAUSE)
        self._away_until = 0.0
        self._warned: dict[str, object] = {}
        """The problems of which there was a warning, each with an object of its own"""

    @property
    def is_away(self) -> bool:
        """Whether the server is not to be asked for now."""
        return monotonic() < self._away_until

    def lose(self, error: HlorankError) -> None:
        """Notes an error of a call. The first one is a warning, and so is the first one that says
        that the server keeps no measurements."""
        if is_no_store(error):
            self._warn("nothing is kept", _OFF)
            return
        # An error of one call alone, such as a space that is too large, is no reason to pause.
        if isinstance(error, _AWAY):
            self._away_until = monotonic() + self._pause
        self._warn("an error", f"{error}; {self._way}")

    def _warn(self, problem: str, message: str) -> None:
        """Warns unless there was a warning of the problem."""
        # Threads of a tuner fail together, and one of them sets the object. A lock has no copy.
        warning = object()
        if self._warned.setdefault(problem, warning) is warning:
            warnings.warn(f"hlorank: {message}", stacklevel=5)
