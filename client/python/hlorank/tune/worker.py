"""The process that compiles and runs programs, which may hang or crash.

``Hardware`` starts the process and controls it over a pipe. The process reports every step, so that
a crash can be assigned to the program that caused it.
"""

import os
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from hlorank.measure.rounds import Protocol

COMPILERS = 2
"""Number of programs compiled in parallel, while nothing is measured."""
DEFAULT = -1
"""The number of the default program."""
MESSAGE = 300
"""Maximum length of a message in characters."""


@dataclass(frozen=True)
class Setting:
    """The default program, and the criteria for all others."""

    reference: bytes
    """The HloModuleProto of the default."""
    arguments: Sequence[np.ndarray]
    tolerance: float
    """Maximum difference of results, relative to the largest value of each array."""
    slow: float
    """Maximum factor by which a run may be slower than the default to be measured in rounds."""


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
    """Duration of the second run."""
    problem: str = ""
    """``compile failed``, ``run failed`` or ``wrong result``"""
    message: str = ""


@dataclass(frozen=True)
class Measured:
    """The times of a batch: of the default, and of each program that was measured in rounds."""

    reference: int
    """Nanoseconds of the default."""
    nanoseconds: dict[int, int]
    noise: float
    """Median relative difference between two passes."""


class _Worker:
    def __init__(self, setting: Setting, connection: Connection):
        from hlorank.measure.execute import Executable, on_device

        self._make = Executable
        self._setting, self._connection = setting, connection
        self._arguments = on_device(setting.arguments)
        self._sending = threading.Lock()
        self._reference = self._compile(setting.reference)
        self._expected = self._reference()
        self._reference_time = _second_run(self._reference)

    def _compile(self, module: bytes) -> Any:
        from hlorank.measure.schema import HloModuleProto

        return self._make(HloModuleProto.FromString(module), self._arguments)

    def _send(self, event: Any) -> None:
        with self._sending:
            self._connection.send(event)

    def measure(self, modules: Sequence[bytes], protocol: Protocol) -> None:
        """Compiles, checks and measures programs, and sends every event."""
        from hlorank.measure.rounds import measure

        with ThreadPoolExecutor(COMPILERS) as pool:
            compiled = list(pool.map(self._try_compile, range(len(modules)), modules))
        rounds = {i: e for i, e in enumerate(compiled) if e is not None and self._check(i, e)}
        timing = measure([self._reference, *rounds.values()], protocol)
        reference, *times = timing.label().tolist()
        self._send(Measured(reference, dict(zip(rounds, times, strict=True)), timing.noise()))

    def _try_compile(self, program: int, module: bytes) -> Any:
        self._send(Started(program))
        try:
            compiled = self._compile(module)
        # XLA raises errors of several types.
        except Exception as error:
            self._send(Ended(program, problem="compile failed", message=first_line(error)))
            return None
        self._send(Compiled(program))
        return compiled

    def _check(self, program: int, executable: Any) -> bool:
        """Runs a program twice and returns whether to measure it in rounds."""
        self._send(Started(program))
        try:
            wrong = self._wrong(executable())
            taken = _second_run(executable)
        except Exception as error:
            self._send(Ended(program, problem="run failed", message=first_line(error)))
            return False
        if wrong:
            self._send(Ended(program, problem="wrong result", message=wrong))
            return False
        self._send(Ended(program, taken))
        return taken <= self._setting.slow * self._reference_time

    def _wrong(self, results: Sequence[Any]) -> str:
        """Returns what is wrong with results; empty if they are right."""
        from hlorank.measure.execute import largest_difference

        expected, shapes = ([a.shape for a in arrays] for arrays in (self._expected, results))
        if shapes != expected:
            return f"results have shapes {shapes}, expected {expected}"[:MESSAGE]
        difference = largest_difference(self._expected, results)
        # Not "greater than", since NaN is wrong too.
        if not difference <= self._setting.tolerance:
            return f"results differ by {difference:.1e} of the largest value"
        return ""


def _second_run(executable: Any) -> int:
    begin = time.perf_counter_ns()
    executable()
    return time.perf_counter_ns() - begin


def first_line(error: Exception) -> str:
    """Returns the first line of an error's message."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:MESSAGE]


def main() -> None:
    """Serves the pipe whose file descriptor is the argument, until it is closed."""
    # Ctrl-C in a terminal is handled by the parent process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection = Connection(int(sys.argv[1]))
    threading.Thread(target=_end_with_the_pipe, args=[connection], daemon=True).start()
    try:
        if (worker := _start(connection)) is not None:
            while True:
                worker.measure(*connection.recv())
    except EOFError:
        pass


def _end_with_the_pipe(connection: Connection) -> None:
    """Ends this process when the parent closes the pipe or is killed, even while XLA is busy."""
    hung_up = select.poll()
    hung_up.register(connection.fileno(), 0)
    hung_up.poll()
    os._exit(0)


def _start(connection: Connection) -> _Worker | None:
    """Runs the default and reports the result; returns None if it fails."""
    setting = connection.recv()
    try:
        worker = _Worker(setting, connection)
    except Exception as error:
        traceback.print_exc()
        connection.send(Ended(DEFAULT, problem="run failed", message=first_line(error)))
        return None
    connection.send(Started(DEFAULT))
    return worker
