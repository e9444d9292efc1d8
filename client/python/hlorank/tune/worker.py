"""The process that compiles and runs programs, so that one that hangs or crashes can be ended.

``Hardware`` starts it and talks to it over a pipe. It tells of every step, so that its end can be
laid at the right program's door.
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
"""Programs compiled at a time; nothing is measured meanwhile."""
DEFAULT = -1
"""The number of the default, in place of a program's."""
MESSAGE = 300
"""Characters of a message that are kept."""


@dataclass(frozen=True)
class Setting:
    """What every program is held against."""

    reference: bytes
    """The HloModuleProto of the default."""
    arguments: Sequence[np.ndarray]
    tolerance: float
    """How much results may differ, relative to the largest value of each array."""
    slow: float
    """How many times slower than the default a first run may be to be measured in rounds."""


@dataclass(frozen=True)
class Started:
    """A program is compiled, or run for the first time."""

    program: int


@dataclass(frozen=True)
class Compiled:
    """A program is compiled."""

    program: int


@dataclass(frozen=True)
class Ended:
    """A program runs and computes the right results, unless ``problem`` says what is wrong."""

    program: int
    nanoseconds: int = 0
    """Of its second run."""
    problem: str = ""
    """``compile failed``, ``run failed``, ``wrong result``"""
    message: str = ""


@dataclass(frozen=True)
class Measured:
    """The end of a batch: the default, and each program that was measured in rounds."""

    reference: int
    """Nanoseconds."""
    nanoseconds: dict[int, int]
    noise: float
    """Median relative difference between two passes."""


class _Bench:
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
        """Compiles, checks and measures; sends what happens."""
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
        # XLA has errors of several kinds.
        except Exception as error:
            self._send(Ended(program, problem="compile failed", message=first_line(error)))
            return None
        self._send(Compiled(program))
        return compiled

    def _check(self, program: int, executable: Any) -> bool:
        """Whether it is to be measured in rounds."""
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
        """What is wrong with results; empty for nothing."""
        from hlorank.measure.execute import largest_difference

        expected, shapes = ([a.shape for a in arrays] for arrays in (self._expected, results))
        if shapes != expected:
            return f"results have shapes {shapes}, expected {expected}"[:MESSAGE]
        difference = largest_difference(self._expected, results)
        # Not "greater than": what is not a number is wrong, too.
        if not difference <= self._setting.tolerance:
            return f"results differ by {difference:.1e} of the largest value"
        return ""


def _second_run(executable: Any) -> int:
    begin = time.perf_counter_ns()
    executable()
    return time.perf_counter_ns() - begin


def first_line(error: Exception) -> str:
    """What an error says, in a line."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:MESSAGE]


def main() -> None:
    """Serves the pipe whose number is the argument, until it is closed."""
    # Ctrl-C in a terminal is for the process that started this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection = Connection(int(sys.argv[1]))
    threading.Thread(target=_end_with_the_pipe, args=[connection], daemon=True).start()
    try:
        if (bench := _start(connection)) is not None:
            while True:
                bench.measure(*connection.recv())
    except EOFError:
        pass


def _end_with_the_pipe(connection: Connection) -> None:
    """Ends this process once the other side is gone, killed maybe, whatever XLA is at then."""
    hung_up = select.poll()
    hung_up.register(connection.fileno(), 0)
    hung_up.poll()
    os._exit(0)


def _start(connection: Connection) -> _Bench | None:
    """Runs the default, and tells how that went."""
    setting = connection.recv()
    try:
        bench = _Bench(setting, connection)
    except Exception as error:
        traceback.print_exc()
        connection.send(Ended(DEFAULT, problem="run failed", message=first_line(error)))
        return None
    connection.send(Started(DEFAULT))
    return bench
