"""What has to be said again and again while something else runs."""

from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread
from time import monotonic
from typing import Self

from hlorank.checks.errors import HlorankError

_LONGEST = 4 * 3600.0
"""Seconds after which a renewal ends by itself: whoever began it forgot it."""


class Renewal:
    """Calls a function at intervals, on a thread of its own, until it is closed.

    An error of the server is passed over, since the next call may succeed.
    """

    def __init__(self, renew: Callable[[], object], interval: float):
        self._renew = renew
        self._interval = interval
        self._closed = Event()
        self._thread = Thread(target=self._run, name="hlorank-renewal", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends it; a call in flight is not waited for."""
        self._closed.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self) -> None:
        end = monotonic() + _LONGEST
        while not self._closed.wait(self._interval) and monotonic() < end:
            with suppress(HlorankError):
                self._renew()
