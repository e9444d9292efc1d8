"""Programs that are loaded, checked and timed in a process of its own, which may hang or crash.

The process names every program before it loads and runs it. So if the process ends, the program
that ended it is known, and the others are measured without it.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, Protocol

import numpy as np

from hlorank_tune.measure import rounds
from hlorank_tune.measure.results import NOT_REPEATABLE, difference
from hlorank_tune.measure.workers import Worker, WorkerError

TOLERANCE = 1e-3
"""Largest difference of a result from the reference's, relative to the largest number in it: a
convolution in another layout adds in another order."""
_GRACE_SECONDS = 5.0
"""Time after the end of a measurement at which a process that still checks programs is ended."""
_REPEATED_BELOW = 1.0
"""Seconds below which a slow run is repeated, since other processes may be the cause."""


class Run(ABC):
    """A program that is ready to run."""

    count = 1
    """How often a timed call runs it."""

    @abstractmethod
    def results(self) -> Sequence[Any]:
        """Runs once, and returns what there is to compare."""

    @abstractmethod
    def __call__(self) -> None:
        """Runs ``count`` times."""

    def calibrate(self) -> float:
        """Returns the seconds of one run; may decide how many runs a timed call makes."""
        begin = time.perf_counter()
        self()
        return time.perf_counter() - begin


class Loader(Protocol):
    """Loads programs in the process that measures them."""

    patience: float
    """Seconds that a program may take until its first runs end."""
    slow: float
    """A program that takes this many times as long as the reference runs only a few times."""
    tolerance: float
    """Largest difference of results that are right, as ``TOLERANCE``."""

    def load(self, program: Any) -> Run:
        """Returns a program that is ready to run."""
        ...

    def failure(self, error: Exception, is_loaded: bool) -> str | None:
        """Returns what an error says of a program, one of ``hlorank.FAILURES``; None for nothing,
        as of an error of the harness."""
        ...


@dataclass(frozen=True)
class Measured:
    """The measurements of programs, in the order that was asked for; the first is the reference."""

    errors: list[str]
    """Why a program has no run time; empty if it has one."""
    failures: list[str | None]
    """What that says of the program, one of ``hlorank.FAILURES``; None for nothing."""
    first: np.ndarray
    """Shortest run time in the first pass, nanoseconds, f64 [programs]; NaN without one."""
    second: np.ndarray
    """The same of the second pass."""
    rounds: int = 0
    repeated: int = 0
    """Rounds that were repeated because the machine was busy."""
    loaded: int = 0
    """Rounds that were kept although the machine was busy."""

    @property
    def nanoseconds(self) -> np.ndarray:
        """The shortest run time of both passes, f64 [programs]."""
        return np.minimum(self.first, self.second)

    @property
    def noise(self) -> np.ndarray:
        """The relative difference of the two passes, f64 [programs]."""
        return np.abs(self.first - self.second) / self.nanoseconds


def measure_programs(
    worker: Worker,
    loader: Loader,
    programs: Sequence[Any],
    protocol: rounds.Protocol,
    seconds: float = inf,
    report: Callable[[str], None] = lambda _: None,
) -> Measured:
    """Measures programs in the same rounds; the first is the reference for results.

    Args:
        worker: A process of this module.
        loader: What loads the programs there.
        programs: The programs; one that is not there is given as the text of the reason.
        protocol: How they are measured.
        seconds: After these, the measurement ends with at least one round of each pass.
        report: Called with a description of the phase after every change.

    Raises:
        WorkerError: if the reference itself fails, does not end, or does not repeat its results.
    """
    end = time.monotonic() + seconds
    errors = [program if isinstance(program, str) else "" for program in programs]
    failures: list[str | None] = [None] * len(errors)
    while True:
        works = [i for i, error in enumerate(errors) if not error]
        started = 0
        left = max(0.0, end - time.monotonic())
        # The reference also waits for the start of the process.
        patience = 2 * loader.patience
        worker.is_running()  # closes one that ended between two measurements
        try:
            worker.send((loader, [programs[i] for i in works], protocol, left))
            while not isinstance(message := worker.receive(patience), Measured):
                if isinstance(message, int):
                    started = message
                left = max(0.0, end - time.monotonic())
                if started == len(works):
                    # The process reports every stretch, which has a run of each program.
                    patience = 2 * loader.patience * len(works)
                elif started:
                    patience = min(loader.patience, left + _GRACE_SECONDS)
                report(_phase(message, started, len(works)))
        except WorkerError as error:
            if started == 0 or len(works) == 1:
                raise
            if started == len(works) > 2:
                return _measured_apart(worker, loader, programs, protocol, (end, report), errors)
            # While both are timed, nobody knows which of two ended the process, and the end of the
            # search says nothing of a program.
            is_certain = started < len(works) and (left > 0 or error.failure != "timeout")
            blamed = works[min(started, len(works) - 1)]
            errors[blamed] = str(error)
            failures[blamed] = error.failure if is_certain else None
            continue
        if message.errors[0]:
            raise WorkerError(f"failed: {message.errors[0]}")
        first, second = np.full((2, len(errors)), np.nan)
        first[works] = message.first
        second[works] = message.second
        for place, i in enumerate(works):
            errors[i] = message.errors[place]
            failures[i] = message.failures[place]
        return replace(message, errors=errors, failures=failures, first=first, second=second)


def _measured_apart(
    worker: Worker,
    loader: Loader,
    programs: Sequence[Any],
    protocol: rounds.Protocol,
    limits: tuple[float, Callable[[str], None]],
    errors: Sequence[str],
) -> Measured:
    """Measures each program alone beside the reference, because one of them ends the process."""
    end, report = limits
    first, second = np.full((2, len(programs)), np.nan)
    found, failures = list(errors), [None] * len(programs)
    for i, program in enumerate(programs[1:], 1):
        if not errors[i]:
            pair = [programs[0], program]
            left = max(0.0, end - time.monotonic())
            one = measure_programs(worker, loader, pair, protocol, left, report)
            first[[0, i]], second[[0, i]] = one.first, one.second
            found[i], failures[i] = one.errors[1], one.failures[1]
    return Measured(found, failures, first, second)


def _phase(message: "int | rounds.Progress", started: int, programs: int) -> str:
    """Describes what the process does now."""
    if started < programs:
        return f"compiling and checking: {started} of {programs} done"
    if isinstance(message, rounds.Progress) and message.load is not None:
        load = f"{message.load:.1f} processors"
        return f"waiting for a quiet machine: other processes use {load}"
    done = message.rounds if isinstance(message, rounds.Progress) else 0
    return f"measuring: {done} rounds of {programs} programs done"


class _Checked(NamedTuple):
    """How the first runs of a program went."""

    run: Run | None
    seconds: float = np.inf
    """Duration of a run."""
    error: str = ""
    failure: str | None = None


def serve(connection: Connection, request: tuple) -> None:
    """Answers one request: the number of every program before it runs, the progress of the
    measurement, then the measurements."""
    loader, programs, protocol, seconds = request
    end = time.monotonic() + seconds
    expected: list[Any] = []
    checked: list[_Checked] = []
    for number, program in enumerate(programs):
        connection.send(number)
        slow = loader.slow * checked[0].seconds if checked else np.inf
        checked.append(_check(loader, program, expected, slow))
    connection.send(len(programs))
    first, second = np.full((2, len(programs)), np.nan)
    runs, taken, errors, failures = map(list, zip(*checked, strict=True))
    if errors[0]:
        connection.send(Measured(errors, failures, first, second))
        return
    right = [i for i, error in enumerate(errors) if not error]
    slow = [i for i in right if taken[i] > loader.slow * taken[0]]
    fast = [i for i in right if i not in slow]
    rough = replace(protocol, warmups=0, rounds=2, most_rounds=2, seconds=0, other_load=np.inf)
    left = max(0.0, end - time.monotonic())
    timing = rounds.measure([runs[i] for i in fast], protocol, left, connection.send)
    timings = [(fast, timing)]
    if slow:
        timings.append((slow, rounds.measure([runs[i] for i in slow], rough)))
    for numbers, times in timings:
        counts = np.array([runs[i].count for i in numbers])
        first[numbers] = times.first.min(0) / counts
        second[numbers] = times.second.min(0) / counts
    done = len(timing.first) + len(timing.second)
    connection.send(Measured(errors, failures, first, second, done, timing.repeated, timing.loaded))


def _check(loader: Loader, program: Any, expected: list[Any], slow: float) -> _Checked:
    """Loads and runs a program, and compares its results; the first one fills the expected ones."""
    run = None
    try:
        run = loader.load(program)
        results = run.results()
        seconds = run.calibrate()
        if slow < seconds < _REPEATED_BELOW:
            seconds = min(seconds, run.calibrate(), run.calibrate())
    except Exception as error:  # compilers and runtimes raise errors of several types
        failure = loader.failure(error, is_loaded=run is not None)
        return _Checked(None, error=first_line(error), failure=failure)
    try:
        if not expected:
            expected += results
            problem = difference(expected, run.results(), loader.tolerance) and NOT_REPEATABLE
            return _Checked(run, seconds, problem)
        problem = difference(expected, results, loader.tolerance)
    except Exception as error:  # types of results that the harness does not know
        return _Checked(run, error=f"the results are not checked: {first_line(error)}")
    if problem:
        return _Checked(run, seconds, f"wrong result: {problem}", "wrong_result")
    return _Checked(run, seconds)


def first_line(error: Exception) -> str:
    """Returns the first line of an error's message, at most 300 characters."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
