"""Measures run times of alternatives so that drift and noise affect all of them equally."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

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


_CLOCKS = {
    "monotonic": lambda: time.perf_counter_ns(),
    "process": lambda: time.process_time_ns(),
}


@dataclass(frozen=True)
class Protocol:
    """Settings of a measurement: warm-ups, then rounds of all alternatives in random order."""

    warmups: int = 2
    rounds: int = 8
    """Minimum rounds of each of the two passes; the label is the minimum over both."""
    most_rounds: int = 64
    seconds: float = 0.5
    """Minimum duration of a pass, for which fast alternatives get up to ``most_rounds`` rounds."""
    stretch_seconds: float = 0.5
    """Approximate duration of a stretch of rounds, which is kept or repeated as a whole."""
    other_load: float = 0.25
    """Maximum load of other processes, in processors; a stretch with more is repeated."""
    tries: int = 100
    """Maximum number of repeated stretches per pass; further stretches are kept under any load."""
    clock: str = "monotonic"
    """``monotonic``, or ``process`` for the processor time of this process, without preemption."""


@dataclass(frozen=True)
class Progress:
    """The progress of a measurement, at the end of a stretch."""

    rounds: int
    """Rounds of both passes that were kept."""
    load: float | None = None
    """Load of other processes, in processors, if the stretch is repeated because of it."""


@dataclass(frozen=True)
class Timing:
    """Run times in nanoseconds, shape [rounds, alternatives], of two passes."""

    first: np.ndarray
    second: np.ndarray
    repeated: int = 0
    """Rounds that were discarded and repeated because the machine was busy."""
    loaded: int = 0
    """Rounds that were kept although the machine was busy."""

    def label(self) -> np.ndarray:
        """Returns the minimum over all rounds: i64 [alternatives]."""
        both = np.concatenate([self.first, self.second])
        return np.maximum(both.min(0), 2).astype(np.int64)

    def of(self, alternatives: Sequence[int]) -> "Timing":
        """Returns the timing of some of the alternatives."""
        return Timing(
            self.first[:, alternatives], self.second[:, alternatives], self.repeated, self.loaded
        )

    def agreement(self) -> float:
        """Returns Kendall's tau between the minima of the two passes (needs scipy)."""
        from scipy.stats import kendalltau

        return float(kendalltau(self.first.min(0), self.second.min(0)).statistic)

    def noise(self) -> float:
        """Returns the relative difference of the two passes' minima, median over alternatives."""
        first = self.first.min(0)
        second = self.second.min(0)
        return float(np.median(np.abs(first - second) / np.minimum(first, second)))


def measure(
    alternatives: Sequence[Callable[[], Any]],
    protocol: Protocol,
    seconds: float = inf,
    report: Callable[[Progress], None] = lambda _: None,
) -> Timing:
    """Times every alternative in two passes; repeats stretches that other processes disturbed.

    After ``seconds``, a pass ends as soon as it has a round. ``report`` is called after every
    stretch.
    """
    begin = time.perf_counter_ns()
    for alternative in alternatives:
        for _ in range(protocol.warmups):
            alternative()
    passes = [_Pass(alternatives, protocol, np.random.default_rng(seed)) for seed in (0, 1)]
    first = passes[0].run(begin + seconds / 2 * 1e9, report)
    before = len(first)
    second = passes[1].run(
        begin + seconds * 1e9, lambda now: report(Progress(before + now.rounds, now.load))
    )
    repeated, loaded = (sum(counts) for counts in zip(*(one.counts for one in passes), strict=True))
    return Timing(first, second, repeated, loaded)


class _Pass:
    def __init__(self, alternatives, protocol: Protocol, random: np.random.Generator):
        self._alternatives = alternatives
        self._protocol = protocol
        self._random = random
        self._kept: list[np.ndarray] = []
        self._tries = protocol.tries
        self._repeated = 0
        self._loaded = 0

    @property
    def counts(self) -> tuple[int, int]:
        """Numbers of rounds repeated and of rounds kept under load."""
        return self._repeated, self._loaded

    def run(self, end: float, report: Callable[[Progress], None]) -> np.ndarray:
        """Returns the kept rounds; ``end`` is a time in nanoseconds."""
        load = OtherLoad()
        while not self._enough(self._kept) and not (self._kept and _is_past(end)):
            stretch = self._stretch(end)
            other = load.since_last()
            busy = other > self._protocol.other_load
            if busy and self._tries and not _is_past(end):
                self._tries -= 1
                self._repeated += len(stretch)
                report(Progress(len(self._kept), other))
                continue
            self._loaded += len(stretch) if busy else 0
            self._kept += stretch
            report(Progress(len(self._kept)))
        return np.array(self._kept)

    def _stretch(self, end: float) -> list[np.ndarray]:
        rounds = [self._round()]
        while _seconds(rounds) < self._protocol.stretch_seconds:
            if self._enough(self._kept + rounds) or _is_past(end):
                break
            rounds.append(self._round())
        return rounds

    def _enough(self, rounds: list[np.ndarray]) -> bool:
        long = _seconds(rounds) >= self._protocol.seconds
        return len(rounds) >= (self._protocol.rounds if long else self._protocol.most_rounds)

    def _round(self) -> np.ndarray:
        times = np.zeros(len(self._alternatives))
        now = _CLOCKS[self._protocol.clock]
        for index in self._random.permutation(len(times)):
            begin = now()
            self._alternatives[index]()
            times[index] = now() - begin
        return times


def _is_past(end: float) -> bool:
    return time.perf_counter_ns() >= end


def _seconds(rounds: list[np.ndarray]) -> float:
    return float(sum(times.sum() for times in rounds)) / 1e9
