"""When a call is tried again. Every call may be: none changes anything but what is cached."""

import random
import time
from dataclasses import dataclass

from hlorank.errors import OverloadedError, RefusedError, UnavailableError


class Deadline:
    """The point in time until which a call may take; never, where no seconds are given."""

    def __init__(self, seconds: float | None):
        self._end = None if seconds is None else time.monotonic() + seconds

    def left(self) -> float | None:
        """Seconds left, not below 0."""
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    def allows(self, pause: float) -> bool:
        """Whether there is time left after a pause of so many seconds."""
        left = self.left()
        return left is None or pause < left


@dataclass(frozen=True)
class Retry:
    """How often, and after how long."""

    times: int = 4
    """How many times at most after the first."""
    first_pause: float = 0.1
    """Seconds before the first retry of an unavailable server; twice that before the next."""

    def pause(self, error: RefusedError, retries: int) -> float | None:
        """Seconds to wait after an error; None where it is final."""
        if retries >= self.times:
            return None
        # Somewhat more, so that those who were refused together do not come back together.
        spread = random.uniform(1.0, 1.5)
        match error:
            case UnavailableError():
                return max(error.retry_after or 0.0, self.first_pause * 2**retries) * spread
            case OverloadedError(retry_after=float(seconds)):
                return seconds * spread
            case _:
                return None
