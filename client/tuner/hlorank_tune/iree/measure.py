"""Measures the tiles of a dispatch, or variants of a program, in a process of its own."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import NamedTuple

import numpy as np

from hlorank_tune.iree.runtime import DispatchSubject, ProgramSubject, Run
from hlorank_tune.measure.results import NOT_REPEATABLE, difference
from hlorank_tune.measure.rounds import Protocol, measure
from hlorank_tune.measure.workers import Worker, WorkerError

TOLERANCE = 1e-3
"""Largest difference of a result from the reference's, relative to the largest number in it."""
SLOW = 10.0
"""A tile that takes this many times as long as the reference only runs four times."""
RUN_SECONDS = 60.0
"""How long the first runs of one tile may take."""


@dataclass(frozen=True)
class Measured:
    """The measurements of one dispatch, by tile in the order that was asked for."""

    errors: list[str]
    """Why a tile has no run time; empty if it has one."""
    failures: list[str | None]
    """What that says of the tile, one of ``hlorank.FAILURES``; None for nothing."""
    first: np.ndarray
    """Shortest run time in the first pass, nanoseconds, f64 [tiles]; NaN without one."""
    second: np.ndarray
    """The same of the second pass."""
    rounds: int = 0
    repeated: int = 0
    """Rounds that were repeated because the machine was busy."""
    loaded: int = 0
    """Rounds that were kept although the machine was busy."""

    @property
    def nanoseconds(self) -> np.ndarray:
        """The shortest run time of both passes, f64 [tiles]."""
        return np.minimum(self.first, self.second)


def measuring_worker() -> Worker:
    """Returns a process for measurements, which keeps to the last processor that may be used.

    Other processes can use the other processors meanwhile.
    """
    return Worker(__name__, [max(os.sched_getaffinity(0))])


def measure_modules(
    worker: Worker,
    subject: DispatchSubject | ProgramSubject,
    modules: Sequence[bytes | str],
    protocol: Protocol,
) -> Measured:
    """Measures modules in the same rounds; the first is the reference for results.

    A module that is not there is given as the reason why.

    Raises:
        WorkerError: if the reference itself fails, does not end, or does not repeat its results.
    """
    errors = [module if isinstance(module, str) else "" for module in modules]
    failures: list[str | None] = [None] * len(errors)
    while True:
        works = [i for i, error in enumerate(errors) if not error]
        started = 0
        try:
            worker.send((subject, [modules[i] for i in works], protocol))
            seconds = RUN_SECONDS
            while isinstance(message := worker.receive(seconds), int):
                started = message
                if started == len(works):
                    # More seconds than a measurement takes with all its repetitions.
                    stretch = protocol.stretch_seconds + 1
                    seconds += 2 * (protocol.tries + 4) * stretch + 600
        except WorkerError as error:
            if not 0 < started < len(works):
                raise
            errors[works[started]] = str(error)
            failures[works[started]] = error.failure
            continue
        if message.errors[0]:
            raise WorkerError(f"failed: {message.errors[0]}")
        # The measurements of some tiles as those of all.
        first, second = np.full((2, len(errors)), np.nan)
        first[works] = message.first
        second[works] = message.second
        for place, i in enumerate(works):
            errors[i] = message.errors[place]
            failures[i] = message.failures[place]
        return replace(message, errors=errors, failures=failures, first=first, second=second)


def serve(connection: Connection, request: tuple) -> None:
    """Answers one request: the number of every tile before it runs, then the measurements."""
    subject, modules, protocol = request
    runs = subject.runs(modules)
    expected: list[np.ndarray] = []
    checked: list[_Checked] = []
    for number, run in enumerate(runs):
        connection.send(number)
        checked.append(_checked(run, expected))
    connection.send(len(modules))
    connection.send(_times(runs, checked, protocol))


class _Checked(NamedTuple):
    """How the first runs of a module went."""

    seconds: float = np.inf
    """Duration of a run."""
    error: str = ""
    failure: str | None = None


def _checked(run: Run | Exception, expected: list[np.ndarray]) -> _Checked:
    """Runs a module and compares its results; the first one fills the expected ones."""
    if isinstance(run, Exception):
        return _Checked(error=f"the module does not load: {_first_line(run)}")
    try:
        results = run.results()
        seconds = run.calibrate()
    except ValueError as error:  # what the runtime raises
        return _Checked(error=_first_line(error), failure="crash")
    except Exception as error:  # types of results that the harness does not know
        return _Checked(error=f"{type(error).__name__}: {_first_line(error)}")
    if not expected:
        expected += results
        if difference(expected, run.results(), TOLERANCE):
            return _Checked(error=NOT_REPEATABLE)
    if problem := difference(expected, results, TOLERANCE):
        return _Checked(seconds, f"wrong result: {problem}", "wrong_result")
    return _Checked(seconds)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _times(runs: Sequence[Run], checked: Sequence[_Checked], protocol: Protocol) -> Measured:
    first, second = np.full((2, len(runs)), np.nan)
    seconds, errors, failures = map(list, zip(*checked, strict=True))
    if errors[0]:
        return Measured(errors, failures, first, second)
    right = [i for i, error in enumerate(errors) if not error]
    slow = [i for i in right if seconds[i] > SLOW * seconds[0]]
    fast = [i for i in right if i not in slow]
    timing = measure([runs[i] for i in fast], protocol)
    short = Protocol(warmups=0, rounds=2, most_rounds=2, seconds=0, other_load=np.inf)
    rough = measure([runs[i] for i in slow], short) if slow else None
    for numbers, times in ((fast, timing), (slow, rough)):
        if times is not None:
            counts = np.array([runs[i].count for i in numbers])
            first[numbers] = times.first.min(0) / counts
            second[numbers] = times.second.min(0) / counts
    rounds = len(timing.first) + len(timing.second)
    return Measured(errors, failures, first, second, rounds, timing.repeated, timing.loaded)
