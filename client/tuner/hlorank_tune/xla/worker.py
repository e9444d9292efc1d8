"""Compiles and runs programs in a process of their own, which may hang or crash.

``Hardware`` sends the requests. The process reports every step, so that a crash can be assigned to
the program that caused it.
"""

import threading
import time
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from hlorank_tune.measure.fusion.compilation import Compilation
from hlorank_tune.measure.results import NOT_REPEATABLE, difference
from hlorank_tune.measure.rounds import Protocol, measure

COMPILERS = 2
"""Number of programs compiled in parallel, while nothing is measured."""
REFERENCE = -1
"""The number of the reference."""
_REPEATED_BELOW = 1_000_000_000
"""Duration in nanoseconds below which a slow run is repeated."""
MESSAGE = 300
"""Maximum length of a message in characters."""


@dataclass(frozen=True)
class Setting:
    """The user's program, to which all others are compared, and the criteria for them."""

    reference: Compilation
    """The user's program."""
    arguments: Sequence[np.ndarray]
    tolerance: float
    """Maximum difference of results, relative to the largest value of each array."""
    slow: float
    """Maximum factor by which a run may be slower than the reference to be measured in rounds."""


@dataclass(frozen=True)
class Started:
    """The compilation or the first run of a program starts."""

    program: int


@dataclass(frozen=True)
class Compiled:
    """The compilation of a program is complete."""

    program: int


@dataclass(frozen=True)
class Ended:
    """The first runs of a program are complete; ``problem`` is empty if the results are right."""

    program: int
    nanoseconds: int = 0
    """Duration of the fastest run but the first."""
    problem: str = ""
    """``compile failed``, ``run failed``, ``wrong result`` or ``not checked``"""
    message: str = ""
    failure: str | None = None
    """One of ``hlorank.FAILURES``; None for an error of the harness."""


@dataclass(frozen=True)
class Measured:
    """The times of a batch: of the reference, and of each program that was measured in rounds."""

    reference: int
    """Nanoseconds of the reference."""
    nanoseconds: dict[int, int]
    noise: float
    """Median relative difference between two passes."""


class _Worker:
    def __init__(self, setting: Setting, connection: Connection):
        # Imported late: the parent process need not load jax.
        from hlorank_tune.measure.execute import on_device

        self._setting = setting
        self._connection = connection
        self._arguments = on_device(setting.arguments)
        self._sending = threading.Lock()
        self._reference = setting.reference.executable(self._arguments)
        self._last_batch = {setting.reference: self._reference}
        self._expected = self._reference()
        if self._wrong(self._reference()):
            raise RuntimeError(NOT_REPEATABLE)
        self._reference_time = min(_run_time(self._reference) for _ in range(2))

    def _send(self, event: Any) -> None:
        with self._sending:
            self._connection.send(event)

    def measure(self, programs: Sequence[Compilation], protocol: Protocol, seconds: float) -> None:
        """Compiles, checks and measures programs, and sends every event."""
        end = time.monotonic() + seconds
        with ThreadPoolExecutor(COMPILERS) as pool:
            compiled = list(pool.map(self._try_compile, range(len(programs)), programs))
        # The parts of a confirmation measure the same programs again.
        self._last_batch = dict(zip(programs, compiled, strict=True))
        rounds = {i: e for i, e in enumerate(compiled) if e is not None and self._check(i, e)}
        left = max(0.0, end - time.monotonic())
        timing = measure([self._reference, *rounds.values()], protocol, left, self._send)
        reference, *times = timing.label().tolist()
        self._send(Measured(reference, dict(zip(rounds, times, strict=True)), timing.noise()))

    def _try_compile(self, program: int, source: Compilation) -> Any:
        self._send(Started(program))
        try:
            compiled = self._last_batch.get(source) or source.executable(self._arguments)
        # Compilers raise errors of several types.
        except Exception as error:
            failure = "compile" if _is_of_compiler(error) else None
            self._send(Ended(program, 0, "compile failed", first_line(error), failure))
            return None
        self._send(Compiled(program))
        return compiled

    def _check(self, program: int, executable: Any) -> bool:
        """Runs a program twice and returns whether to measure it in rounds."""
        self._send(Started(program))
        try:
            results = executable()
            taken = self._later_runs(executable)
        except Exception as error:
            failure = "crash" if _is_of_compiler(error) else None
            self._send(Ended(program, 0, "run failed", first_line(error), failure))
            return False
        try:
            wrong = self._wrong(results)
        except Exception as error:  # what is wrong is not the program
            self._send(Ended(program, 0, "not checked", first_line(error)))
            return False
        if wrong:
            self._send(Ended(program, 0, "wrong result", wrong, "wrong_result"))
            return False
        self._send(Ended(program, taken))
        return executable is self._reference or not self._is_slow(taken)

    def _is_slow(self, nanoseconds: int) -> bool:
        return nanoseconds > self._setting.slow * self._reference_time

    def _later_runs(self, executable: Any) -> int:
        """Times the second run; two more if it was slow, since other processes may be the cause."""
        taken = _run_time(executable)
        if self._is_slow(taken) and taken < _REPEATED_BELOW:
            taken = min(taken, _run_time(executable), _run_time(executable))
        return taken

    def _wrong(self, results: Sequence[Any]) -> str:
        """Returns what is wrong with results; empty if they are right."""
        return difference(self._expected, results, self._setting.tolerance)[:MESSAGE]


def _is_of_compiler(error: Exception) -> bool:
    """Returns whether an error is XLA's, and not one of Python in the harness."""
    of_python = RecursionError | NotImplementedError
    return isinstance(error, RuntimeError) and not isinstance(error, of_python)


def _run_time(executable: Any) -> int:
    begin = time.perf_counter_ns()
    executable()
    return time.perf_counter_ns() - begin


def first_line(error: Exception) -> str:
    """Returns the first line of an error's message."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:MESSAGE]


_current: _Worker | None = None


def serve(
    connection: Connection, request: Setting | tuple[Sequence[Compilation], Protocol, float]
) -> None:
    """Answers one request: a ``Setting``, which comes first, or a batch to measure."""
    global _current
    if isinstance(request, Setting):
        _current = _start(connection, request)
    elif _current is not None:
        _current.measure(*request)


def _start(connection: Connection, setting: Setting) -> _Worker | None:
    """Runs the reference and reports the result; returns None if it fails."""
    try:
        worker = _Worker(setting, connection)
    except Exception as error:
        traceback.print_exc()
        connection.send(Ended(REFERENCE, problem="run failed", message=first_line(error)))
        return None
    connection.send(Started(REFERENCE))
    return worker
