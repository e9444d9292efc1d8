"""The processor load of other processes during a measurement."""

import os
import time
from pathlib import Path

_STATISTICS = Path("/proc/stat")
_IDLE_FIELDS = (3, 4)
"""Fields of a ``cpu`` line: idle, and idle while waiting for a disk."""
_GUEST_FIELDS = 8
"""Number of fields; the guest times after them are already counted in them."""


class OtherLoad:
    """The number of processors that other processes kept busy, stolen time included.

    Only processors that this process may run on are counted, so ``taskset`` separates a measurement
    from other work.
    """

    def __init__(self) -> None:
        self._last = self._now()

    def since_last(self) -> float:
        """Returns the mean since the last call; 0 if the system has no such statistics."""
        before = self._last
        self._last = self._now()
        elapsed = self._last[0] - before[0]
        busy = (self._last[1] - before[1]) - (self._last[2] - before[2])
        return max(0.0, busy / elapsed) if elapsed > 0 else 0.0

    def _now(self) -> tuple[float, float, float]:
        own = time.process_time()
        return time.monotonic(), _busy_seconds() or own, own


def _busy_seconds() -> float:
    """Returns busy processor seconds since boot; 0 if the system has no such statistics."""
    try:
        lines = _STATISTICS.read_text(encoding="ascii").splitlines()
        own = {f"cpu{number}" for number in os.sched_getaffinity(0)}
    except (AttributeError, OSError):
        return 0.0
    rows = [line.split() for line in lines]
    fields = [row[1 : 1 + _GUEST_FIELDS] for row in rows if row and row[0] in own]
    ticks = sum(
        int(value) for row in fields for place, value in enumerate(row) if place not in _IDLE_FIELDS
    )
    return ticks / os.sysconf("SC_CLK_TCK")
