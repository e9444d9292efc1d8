"""Processes that compile and run what may make either crash or hang."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from hlorank.errors import HlorankError
from hlorank.measure.child import Child

OWN_SIGNALS = frozenset({"SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP"})
"""Signals by which a program ends itself. Others come from outside, such as SIGKILL if memory is
short, and an exit code is the end of the worker itself."""


class WorkerError(HlorankError):
    """A worker process crashed or exceeded its time."""

    failure: str | None
    """What that says of the program in the worker: ``crash``, ``timeout``, or None for nothing."""

    def __init__(self, message: str, failure: str | None = None):
        super().__init__(message)
        self.failure = failure


@dataclass
class Worker(Child):
    """A process that answers one request at a time; it starts again after it ended."""

    module: str
    """The Python module whose ``serve`` answers the requests."""
    processors: Sequence[int] = ()
    """Processors that it may use; all if empty."""

    def send(self, request: Any) -> None:
        """Sends a request; starts the process if there is none."""
        connection = self._connection or self._start()
        try:
            connection.send(request)
        except OSError as error:
            raise self._ended() from error

    def receive(self, seconds: float) -> Any:
        """Returns the next message.

        Raises:
            WorkerError: if the process ends, or sends nothing within ``seconds``.
        """
        assert self._connection is not None
        try:
            if self._connection.poll(seconds):
                return self._connection.recv()
        except (EOFError, OSError) as error:
            raise self._ended() from error
        self.close()
        raise WorkerError(f"timed out after {seconds:g} s", "timeout")

    def _start(self) -> Connection:
        here, there = Pipe()
        code = f"from hlorank.measure.workers import main; main({self.module!r})"
        numbers = [there.fileno(), *self.processors]
        self._process = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, numbers)],
            pass_fds=[there.fileno()],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )
        there.close()
        self._connection = here
        return here

    def _ended(self) -> WorkerError:
        code = None
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                code = self._process.wait(10)
        self.close()
        if code is None or code >= 0:
            return WorkerError(f"crashed with exit code {code}")
        name = signal.Signals(-code).name
        return WorkerError(f"crashed with {name}", "crash" if name in OWN_SIGNALS else None)


def main(module: str) -> None:
    """Serves requests of the parent until it closes the connection."""
    from importlib import import_module

    number, *processors = map(int, sys.argv[1:])
    if processors:
        os.sched_setaffinity(0, processors)
    connection = Connection(number)
    # The parent closes the connection at any time.
    with suppress(EOFError, BrokenPipeError, KeyboardInterrupt):
        while True:
            import_module(module).serve(connection, connection.recv())
