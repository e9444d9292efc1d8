"""Retries of calls, by the rule of the Rust client.

Every call may be retried, since calls change only the server's caches, and what is reported or
deleted twice counts once. A call is retried while its deadline leaves time for the pause before
the retry; a call without a deadline is retried until ``PATIENCE`` after its first failure.
"""

import random
import time
from dataclasses import dataclass

from hlorank.arguments import whole_number
from hlorank.errors import OverloadedError, RefusedError, UnavailableError


class Deadline:
    """The point in time at which a call expires; None for no deadline."""

    def __init__(self, seconds: float | None):
        self._end = None if seconds is None else time.monotonic() + seconds

    def left(self) -> float | None:
        """Returns the seconds left, at least 0; None for no deadline."""
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    def allows(self, pause: float) -> bool:
        """Returns whether time is left after a pause of ``pause`` seconds."""
        left = self.left()
        return left is None or pause < left


PATIENCE = 30.0
"""Seconds of retries after the first failure of a call without a deadline."""


@dataclass(frozen=True)
class Retry:
    """The number of retries, and the pauses before them."""

    times: int | None = None
    """Maximum number of retries; None for as many as the time allows."""
    first_pause: float = 0.1
    """Seconds before the first retry if the server is unavailable; each further pause doubles."""
    longest_pause: float = 1.0
    """Maximum seconds of a pause that the server did not ask for."""

    def pause(self, error: RefusedError, retries: int) -> float | None:
        """Returns the seconds to wait after an error; None if there is no further retry."""
        if self.times is not None and retries >= self.times:
            return None
        # Random extra time, so that clients that were rejected together do not retry together.
        spread = random.uniform(1.0, 1.5)
        match error:
            case UnavailableError():
                own = min(self.first_pause * 2 ** min(retries, 32), self.longest_pause)
                return max(error.retry_after or 0.0, own) * spread
            case OverloadedError(retry_after=float(seconds)):
                return seconds * spread
            case _:
                return None


def retry_of(retries: int | None) -> Retry:
    """Checks the maximum number of retries."""
    return Retry(None if retries is None else whole_number(retries, "retries"))
