"""Retries of calls, by the rule of the Rust client.

Every call may be retried, since calls change only the server's caches, and what is reported or
deleted twice counts once. A call is retried while its deadline leaves time for the pause before
the retry; a call without a deadline is retried until ``PATIENCE`` after its first failure.
"""

import random
import time
from dataclasses import dataclass

import grpc

from hlorank.checks.errors import (
    DeadlineError,
    HandshakeError,
    OverloadedError,
    RefusedError,
    UnavailableError,
)
from hlorank.wire import defaults


class Deadline:
    """The point in time at which a call expires; None for no deadline.

    The seconds of a call are those of all attempts together, so each attempt gets what is left.
    """

    def __init__(self, seconds: float | None):
        self._end = None if seconds is None else time.monotonic() + seconds

    def left(self) -> float | None:
        """Returns the seconds left, at least 0; None for no deadline."""
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    def allows(self, pause: float) -> bool:
        """Returns whether time is left after a pause of ``pause`` seconds."""
        left = self.left()
        return left is None or pause < left


@dataclass(frozen=True)
class Retry:
    """The number of retries, and the pauses before them."""

    times: int | None = None
    """Maximum number of retries; None for as many as the time allows."""

    def pause(self, error: RefusedError, retries: int) -> float | None:
        """Returns the seconds to wait after an error; None if there is no further retry."""
        if self.times is not None and retries >= self.times:
            return None
        # Random extra time, so that clients that were rejected together do not retry together.
        spread = random.uniform(1.0, 1.5)
        match error:
            case HandshakeError():
                return None
            case UnavailableError():
                own = min(
                    defaults.FIRST_PAUSE * float(1 << min(retries, 32)), defaults.LONGEST_PAUSE
                )
                return max(error.retry_after or 0.0, own) * spread
            # Only the server knows when its limits allow the call: without a time from it, there is
            # no retry.
            case OverloadedError(retry_after=float(seconds)):
                return seconds * spread
            case _:
                return None


class Attempts:
    """The attempts of one call, until one succeeds or the deadline or the rule ends them."""

    def __init__(self, retry: Retry, deadline: Deadline):
        left = deadline.left()
        if left == 0:
            code = grpc.StatusCode.DEADLINE_EXCEEDED
            raise DeadlineError(code, "the timeout expired before the call")
        self._retry = retry
        self._limit = deadline
        self._has_deadline = left is not None
        self._retries = 0
        self._before: RefusedError | None = None

    def pause_after(self, error: RefusedError) -> float:
        """Returns the seconds to wait before the next attempt. Raises the error if there is none.

        If the time ends an attempt that followed a failure, the failure says why there was no
        answer in time, and is what is raised.
        """
        # The time counts from the first failure: a call without a deadline may take long to fail.
        if self._retries == 0 and not self._has_deadline:
            self._limit = Deadline(defaults.PATIENCE)
        pause = self._retry.pause(error, self._retries)
        if pause is None or not self._limit.allows(pause):
            if self._before is not None and isinstance(error, DeadlineError):
                raise self._before from error
            raise error
        self._before = error
        self._retries += 1
        return pause
