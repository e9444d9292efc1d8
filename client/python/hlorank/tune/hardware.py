"""Measures programs on the machine at hand."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self

import numpy as np

from hlorank.errors import HlorankError
from hlorank.measure.rounds import Protocol
from hlorank.tune.worker import MESSAGE, Compiled, Ended, Measured, Setting, Started

_WORKER = "from hlorank.tune.worker import main; main()"
"""Imported, since the classes of a main module would have another qualified name."""

_STACK = ("@", "***")
"""Prefixes of the lines of a stack trace that XLA writes."""

MEASURED = "measured"
SLOW = "slow"
"""Measured by a single run, which took much longer than the default's."""

SEARCH = Protocol(warmups=1, rounds=5, most_rounds=32, seconds=0.3, tries=60)
"""Protocol of the measurements during a search."""
CONFIRM = Protocol(rounds=12, seconds=1.0, tries=100)
"""Protocol of the longer measurements that choose the winner."""


class HardwareError(HlorankError):
    """A program does not compile or run with its default configuration."""


@dataclass(frozen=True)
class Outcome:
    """The result of one candidate."""

    status: str
    """``measured``, ``slow``, ``lowering failed``, ``compile failed``, ``run failed``,
    ``wrong result``, ``timed out`` or ``crashed``"""
    nanoseconds: int | None = None
    reference: int | None = None
    """Nanoseconds of the default, measured in the same rounds."""
    noise: float | None = None
    """Median relative difference between two passes of the batch."""
    message: str = ""

    @property
    def ratio(self) -> float:
        """Run time divided by the default's; infinite if the candidate does not work."""
        return self.nanoseconds / self.reference if self.nanoseconds and self.reference else np.inf


@dataclass(frozen=True)
class Timeouts:
    """Timeouts in seconds."""

    start: float = 300.0
    """To compile and run the default."""
    compile: float = 120.0
    run: float = 60.0
    """For the first two runs; the results of the first are checked."""


@dataclass
class Hardware:
    """A process that runs the programs of one search; it is restarted if a program ends it."""

    setting: Setting
    log: Path
    """File for the output of the process."""
    timeouts: Timeouts = field(default_factory=Timeouts)
    threads: int = 1
    """Threads of a program, 0 for as many as XLA uses; models were trained with 1."""
    _process: "subprocess.Popen[bytes] | None" = None
    _connection: Connection | None = None
    _earlier_log_bytes: int = 0
    """Bytes of the log that earlier processes wrote."""

    def measure(self, modules: Sequence[bytes], protocol: Protocol) -> list[Outcome]:
        """Measures programs (HloModuleProto) in the same rounds as the default.

        Raises:
            HardwareError: if the default itself does not run.
        """
        batch = _Batch(modules)
        if not self._run(batch, protocol):
            suspects = batch.suspects()
            if len(suspects) == 1:
                batch.fail(suspects[0])
            else:
                for program in suspects:
                    batch.outcomes[program] = self.measure([modules[program]], protocol)[0]
            rest = batch.unknown()
            again = self.measure([modules[i] for i in rest], protocol) if rest else []
            for program, outcome in zip(rest, again, strict=True):
                batch.outcomes[program] = outcome
        return batch.known()

    def close(self) -> None:
        """Ends the process."""
        if self._connection is not None:
            self._connection.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._connection = self._process = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _run(self, batch: "_Batch", protocol: Protocol) -> bool:
        """Returns whether the batch was completed."""
        connection = self._running() or self._start()
        try:
            connection.send((batch.modules, protocol))
            while not batch.is_measured:
                seconds = batch.timeout(self.timeouts, protocol)
                if not connection.poll(seconds):
                    batch.end("timed out", f"after {seconds:g} s")
                    self.close()
                    return False
                batch.take(connection.recv())
        except (EOFError, OSError):
            batch.end("crashed", self._exit_message())
            self.close()
            return False
        return True

    def _running(self) -> Connection | None:
        """Returns the connection to the process; None if it was not started or has ended."""
        if self._process is not None and self._process.poll() is not None:
            self.close()
        return self._connection

    def _start(self) -> Connection:
        here, there = Pipe()
        environment = dict(os.environ)
        if self.threads:
            # XLA reads NPROC when it starts.
            environment["NPROC"] = str(self.threads)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._earlier_log_bytes = log.tell()
            command = [sys.executable, "-c", _WORKER, str(there.fileno())]
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[there.fileno()],
                env=environment,
            )
        there.close()
        self._connection = here
        if problem := self._problem_of_default(here):
            self.close()
            raise HardwareError(
                f"the program does not run with its default configuration: {problem}"
            )
        return here

    def _problem_of_default(self, connection: Connection) -> str:
        """Returns why the default does not run; empty if it runs."""
        try:
            connection.send(self.setting)
            if not connection.poll(self.timeouts.start):
                return f"timeout after {self.timeouts.start:g} s"
            event = connection.recv()
        except (EOFError, OSError):
            return self._exit_message()
        return event.message if isinstance(event, Ended) else ""

    def _exit_message(self) -> str:
        """Returns how the process ended, and its last line of output outside stack traces."""
        words = []
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                code = self._process.wait(5)
                words += [signal.strsignal(-code) or f"signal {-code}"] if code < 0 else []
        output = self.log.read_bytes()[self._earlier_log_bytes :].decode(errors="replace")
        lines = (line.strip() for line in output.splitlines())
        words += [line for line in lines if line and not line.startswith(_STACK)][-1:]
        return ": ".join(words)[:MESSAGE] or "without output"


class _Batch:
    """The outcomes of the programs of one batch, as far as they are known."""

    def __init__(self, modules: Sequence[bytes]):
        self.modules = list(modules)
        self.outcomes: list[Outcome | None] = [None] * len(modules)
        self.is_measured = False
        self._running: set[int] = set()
        self._compiled: set[int] = set()
        self._first_runs: dict[int, int] = {}
        self._end: Outcome | None = None

    def take(self, event: Started | Compiled | Ended | Measured) -> None:
        match event:
            case Started(program):
                self._running.add(program)
            case Compiled(program):
                self._running.discard(program)
                self._compiled.add(program)
            case Ended(program, problem=""):
                self._running.discard(program)
                self._first_runs[program] = event.nanoseconds
            case Ended(program):
                self._running.discard(program)
                self.outcomes[program] = Outcome(event.problem, message=event.message)
            case Measured():
                self._finish(event)

    def _finish(self, event: Measured) -> None:
        self.is_measured = True
        for program, single in self._first_runs.items():
            status = MEASURED if program in event.nanoseconds else SLOW
            taken = event.nanoseconds.get(program, single)
            self.outcomes[program] = Outcome(status, taken, event.reference, event.noise)

    def timeout(self, timeouts: Timeouts, protocol: Protocol) -> float:
        """Returns the timeout in seconds of the next event."""
        unknown = set(self.unknown())
        if unknown - self._compiled:
            return timeouts.compile
        if unknown - self._first_runs.keys():
            return timeouts.run
        # All programs are being measured: rounds, and those that are repeated under load.
        round_ = sum(self._first_runs.values()) / 1e9 + 1
        stretch = max(round_, protocol.stretch_seconds)
        return 60 + 4 * (2 * protocol.most_rounds * round_ + 2 * protocol.tries * stretch)

    def end(self, status: str, message: str) -> None:
        """Stores how the process ended."""
        self._end = Outcome(status, message=message)

    def suspects(self) -> list[int]:
        """Returns the programs that may have ended the process.

        These are the programs in compilation or in their first runs, or else all unknown ones.
        """
        return sorted(self._running) or self.unknown()

    def fail(self, program: int) -> None:
        """Assigns the end of the process to a program."""
        self.outcomes[program] = self._end

    def unknown(self) -> list[int]:
        """Returns the programs without an outcome."""
        return [i for i, outcome in enumerate(self.outcomes) if outcome is None]

    def known(self) -> list[Outcome]:
        """Returns the outcomes."""
        return [outcome for outcome in self.outcomes if outcome is not None]
