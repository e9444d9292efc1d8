"""Measures the tiles of a dispatch, or variants of a program, in a process of its own."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection

import numpy as np

from hlorank.iree.runtime import DispatchSubject, ProgramSubject, Run
from hlorank.measure.rounds import Protocol, measure
from hlorank.measure.workers import Worker, WorkerError

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
        WorkerError: if the reference itself crashes or does not end.
    """
    errors = [module if isinstance(module, str) else "" for module in modules]
    while True:
        works = [i for i, error in enumerate(errors) if not error]
        started = 0
        try:
            worker.send((subject, [modules[i] for i in works], protocol))
            seconds = RUN_SECONDS
            while isinstance(message := worker.receive(seconds), int):
                started = message
                is_last = started == len(works)
                seconds = RUN_SECONDS + (_longest(protocol) if is_last else 0)
        except WorkerError as error:
            if not 0 < started < len(works):
                raise
            errors[works[started]] = str(error)
            continue
        return _spread(message, works, errors)


def _longest(protocol: Protocol) -> float:
    """Returns more seconds than a measurement takes with all its repetitions."""
    return 2 * (protocol.tries + 4) * (protocol.stretch_seconds + 1) + 600


def _spread(message: Measured, works: Sequence[int], errors: list[str]) -> Measured:
    """Returns the measurements of some tiles as those of all."""
    first, second = np.full((2, len(errors)), np.nan)
    first[works], second[works] = message.first, message.second
    for i, error in zip(works, message.errors, strict=True):
        errors[i] = error
    return Measured(errors, first, second, message.rounds, message.repeated, message.loaded)


def serve(connection: Connection, request: tuple) -> None:
    """Answers one request: the number of every tile before it runs, then the measurements."""
    subject, modules, protocol = request
    runs, seconds, errors = subject.runs(modules), [], []
    expected: list[np.ndarray] = []
    for number, run in enumerate(runs):
        connection.send(number)
        try:
            if isinstance(run, Exception):
                raise run
            results = run.results()
            expected = expected or results
            errors.append(difference(expected, results))
            seconds.append(run.calibrate())
        except ValueError as error:  # what the runtime raises
            errors.append(str(error).splitlines()[0])
            seconds.append(np.inf)
    connection.send(len(modules))
    connection.send(_times(runs, np.array(seconds), errors, protocol))


def difference(expected: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> str:
    """Says how results differ from the expected ones; empty if they agree."""
    for number, (one, other) in enumerate(zip(expected, results, strict=True)):
        one, other = _floats(one), _floats(other)
        largest = np.abs(one[np.isfinite(one)]).max(initial=0)
        same = (one == other) | (np.isnan(one) & np.isnan(other))
        gaps = np.abs(np.subtract(one, other, where=~same, out=np.zeros_like(one)))
        # A gap that is not a number is too large as well.
        if not (gaps <= TOLERANCE * largest).all():
            return f"wrong result: buffer {number} differs by {gaps.max():.2g}"
    return ""


def _floats(array: np.ndarray) -> np.ndarray:
    if array.dtype == np.uint16:  # bfloat16
        return (array.astype("u4") << 16).view("f4").astype("f8")
    return array.astype("f8")


def _times(
    runs: Sequence[Run], seconds: np.ndarray, errors: list[str], protocol: Protocol
) -> Measured:
    right = [i for i, error in enumerate(errors) if not error]
    is_slow = seconds > SLOW * seconds[0]
    fast, slow = [i for i in right if not is_slow[i]], [i for i in right if is_slow[i]]
    timing = measure([runs[i] for i in fast], protocol)
    short = Protocol(warmups=0, rounds=2, most_rounds=2, seconds=0, other_load=np.inf)
    rough = measure([runs[i] for i in slow], short) if slow else None
    first, second = np.full((2, len(runs)), np.nan)
    for numbers, times in ((fast, timing), (slow, rough)):
        if times is not None:
            counts = np.array([runs[i].count for i in numbers])
            first[numbers] = times.first.min(0) / counts
            second[numbers] = times.second.min(0) / counts
    rounds = len(timing.first) + len(timing.second)
    return Measured(errors, first, second, rounds, timing.repeated, timing.loaded)
