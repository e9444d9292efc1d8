"""Whether other programs keep the machine busy while something is measured."""

import os
import time
from pathlib import Path

_STATISTICS = Path("/proc/stat")
_IDLE_FIELDS = (3, 4)
"""Of the line ``cpu``: idle, and idle while waiting for a disk."""
_GUEST_FIELDS = 8
"""What follows is counted in the fields before."""


class OtherLoad:
    """How many processors were busy with anything but this process, stolen time included.

    Of those that this process may run on: ``taskset`` keeps a measurement apart from what else
    runs.
    """

    def __init__(self) -> None:
        self._last = self._now()

    def since_last(self) -> float:
        """Mean number of processors since the last call; 0 where the system does not tell."""
        before, self._last = self._last, self._now()
        elapsed = self._last[0] - before[0]
        busy = (self._last[1] - before[1]) - (self._last[2] - before[2])
        return max(0.0, busy / elapsed) if elapsed > 0 else 0.0

    def _now(self) -> tuple[float, float, float]:
        own = time.process_time()
        return time.monotonic(), _busy_seconds() or own, own


def _busy_seconds() -> float:
    """Processor seconds since the system started, 0 where it does not tell."""
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
