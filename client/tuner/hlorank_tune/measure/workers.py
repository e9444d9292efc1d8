"""Processes that compile and run what may make either crash or hang."""

import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self

from hlorank.checks.errors import HlorankError

OWN_SIGNALS = frozenset({"SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP"})
"""Signals by which a program ends itself. Others come from outside, such as SIGKILL if memory is
short, and an exit code is the end of the worker itself."""
_STACK = ("@", "***")
"""Prefixes of the lines of a stack trace that compilers write."""


class WorkerError(HlorankError):
    """A worker process crashed or exceeded its time."""

    failure: str | None
    """What that says of the program in the worker: ``crash``, ``timeout``, or None for nothing."""

    def __init__(self, message: str, failure: str | None = None):
        super().__init__(message)
        self.failure = failure


@dataclass
class Worker:
    """A process that answers one request at a time; it starts again after it ended."""

    module: str
    """The Python module whose ``serve`` answers the requests."""
    processors: Sequence[int] = ()
    """Processors that it may use; all if empty."""
    log: Path | None = None
    """File for its output; None for the output of this process."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment variables that it has beside those of this process."""
    _process: "subprocess.Popen[bytes] | None" = field(default=None, init=False)
    _connection: Connection | None = field(default=None, init=False)
    _earlier_log_bytes: int = field(default=0, init=False)
    """Bytes of the log that earlier processes wrote."""

    def close(self) -> None:
        """Ends the process."""
        if self._connection is not None:
            self._connection.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._connection = None
        self._process = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def is_running(self) -> bool:
        """Returns whether there is a process; closes one that ended by itself."""
        if self._process is not None and self._process.poll() is not None:
            self.close()
        return self._process is not None

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
        raise WorkerError(f"timed out after {seconds:.4g} s", "timeout")

    def _start(self) -> Connection:
        here, there = Pipe()
        code = f"from hlorank_tune.measure.workers import main; main({self.module!r})"
        numbers = [there.fileno(), *self.processors]
        path = os.pathsep.join(path for path in sys.path if path)
        log = self._open_log()
        self._process = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, numbers)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[there.fileno()],
            env=os.environ | {"PYTHONPATH": path} | self.variables,
        )
        # Otherwise the end of the child would not close the pipe.
        there.close()
        if log is not None:
            log.close()
        self._connection = here
        return here

    def _open_log(self) -> Any:
        if self.log is None:
            return None
        self.log.parent.mkdir(parents=True, exist_ok=True)
        file = self.log.open("ab")
        self._earlier_log_bytes = file.tell()
        return file

    def _ended(self) -> WorkerError:
        code = None
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                code = self._process.wait(10)
        self.close()
        by_signal = code is not None and code < 0
        name = signal.Signals(-code).name if by_signal else f"exit code {code}"
        message = ": ".join([f"crashed with {name}", *self._last_output()])
        return WorkerError(message[:300], "crash" if name in OWN_SIGNALS else None)

    def _last_output(self) -> list[str]:
        """Returns the last line of the log outside stack traces, if there is one."""
        if self.log is None:
            return []
        output = self.log.read_bytes()[self._earlier_log_bytes :].decode(errors="replace")
        lines = (line.strip() for line in output.splitlines())
        return [line for line in lines if line and not line.startswith(_STACK)][-1:]


def main(module: str) -> None:
    """Serves requests of the parent until it closes the connection."""
    from importlib import import_module

    # Ctrl-C in a terminal reaches every process; the parent ends this one when it has tidied up.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    number, *processors = map(int, sys.argv[1:])
    if processors:
        os.sched_setaffinity(0, processors)
    connection = Connection(number)
    threading.Thread(target=_end_with_the_pipe, args=[connection], daemon=True).start()
    # The parent closes the connection at any time.
    with suppress(EOFError, BrokenPipeError):
        while True:
            import_module(module).serve(connection, connection.recv())


def _end_with_the_pipe(connection: Connection) -> None:
    """Ends this process when the parent closes the pipe or is killed, even during a compilation."""
    hung_up = select.poll()
    hung_up.register(connection.fileno(), 0)
    hung_up.poll()
    os._exit(0)
