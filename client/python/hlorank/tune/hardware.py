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
"""Not as a main module, whose classes have another name."""

_STACK = ("@", "***")
"""How lines of a stack begin, as XLA writes it."""

MEASURED = "measured"
SLOW = "slow"
"""Measured by a single run, since that took so much longer than the default."""

SEARCH = Protocol(warmups=1, rounds=5, most_rounds=32, seconds=0.3, tries=60)
"""What a search judges by."""
CONFIRM = Protocol(rounds=12, seconds=1.0, tries=100)
"""What the winner is chosen by."""


class HardwareError(HlorankError):
    """The default of a program does not compile or run."""


@dataclass(frozen=True)
class Outcome:
    """What became of one candidate."""

    status: str
    """``measured``, ``slow``, ``lowering failed``, ``compile failed``, ``run failed``,
    ``wrong result``, ``timed out`` or ``crashed``"""
    nanoseconds: int | None = None
    reference: int | None = None
    """Nanoseconds of the default, measured in turns with it."""
    noise: float | None = None
    """Median relative difference between two passes of the batch."""
    message: str = ""

    @property
    def ratio(self) -> float:
        """Run time over that of the default; infinite for what does not work."""
        return self.nanoseconds / self.reference if self.nanoseconds and self.reference else np.inf


@dataclass(frozen=True)
class Patience:
    """Seconds after which a program is given up."""

    start: float = 300.0
    """To compile and run the default."""
    compile: float = 120.0
    run: float = 60.0
    """For the first two runs, the results of which are checked."""


@dataclass
class Hardware:
    """A process that runs the programs of one search; started anew where a program ends it."""

    setting: Setting
    log: Path
    """Where the process writes what XLA says."""
    patience: Patience = field(default_factory=Patience)
    threads: int = 1
    """Threads that a program runs on, 0 for as many as XLA takes; models were trained with 1."""
    _process: "subprocess.Popen[bytes] | None" = None
    _connection: Connection | None = None
    _said_before: int = 0
    """Bytes of the log that are of earlier processes."""

    def measure(self, modules: Sequence[bytes], protocol: Protocol) -> list[Outcome]:
        """Measures programs (HloModuleProto) in turns with the default.

        Raises:
            HardwareError: where the default itself does not run.
        """
        batch = _Batch(modules)
        if not self._run(batch, protocol):
            suspects = batch.suspects()
            if len(suspects) == 1:
                batch.blame(suspects[0])
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
        """Whether the batch came to its end."""
        connection = self._running() or self._start()
        try:
            connection.send((batch.modules, protocol))
            while not batch.is_measured:
                seconds = batch.patience(self.patience, protocol)
                if not connection.poll(seconds):
                    batch.end("timed out", f"after {seconds:g} s")
                    self.close()
                    return False
                batch.take(connection.recv())
        except (EOFError, OSError):
            batch.end("crashed", self._last_words())
            self.close()
            return False
        return True

    def _running(self) -> Connection | None:
        """The way to the process; None where there is none, or it ended between two batches."""
        if self._process is not None and self._process.poll() is not None:
            self.close()
        return self._connection

    def _start(self) -> Connection:
        here, there = Pipe()
        environment = dict(os.environ)
        if self.threads:
            # XLA reads it when it starts.
            environment["NPROC"] = str(self.threads)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._said_before = log.tell()
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
        """Why the default does not run; empty where it does."""
        try:
            connection.send(self.setting)
            if not connection.poll(self.patience.start):
                return f"it took longer than {self.patience.start:g} s"
            event = connection.recv()
        except (EOFError, OSError):
            return self._last_words()
        return event.message if isinstance(event, Ended) else ""

    def _last_words(self) -> str:
        """How the process ended, and the last line that it wrote, but for a stack."""
        words = []
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                code = self._process.wait(5)
                words += [signal.strsignal(-code) or f"signal {-code}"] if code < 0 else []
        said = self.log.read_bytes()[self._said_before :].decode(errors="replace")
        lines = (line.strip() for line in said.splitlines())
        words += [line for line in lines if line and not line.startswith(_STACK)][-1:]
        return ": ".join(words)[:MESSAGE] or "it said nothing"


class _Batch:
    """What is known of the programs of one batch so far."""

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

    def patience(self, patience: Patience, protocol: Protocol) -> float:
        """Seconds within which something must happen."""
        unknown = set(self.unknown())
        if unknown - self._compiled:
            return patience.compile
        if unknown - self._first_runs.keys():
            return patience.run
        # All are being measured: rounds, and those that are thrown away under load.
        round_ = sum(self._first_runs.values()) / 1e9 + 1
        stretch = max(round_, protocol.stretch_seconds)
        return 60 + 4 * (2 * protocol.most_rounds * round_ + 2 * protocol.tries * stretch)

    def end(self, status: str, message: str) -> None:
        """The process ended, or was ended."""
        self._end = Outcome(status, message=message)

    def suspects(self) -> list[int]:
        """Who was being compiled or run for the first time then, or else all that are not known."""
        return sorted(self._running) or self.unknown()

    def blame(self, program: int) -> None:
        """Lays the end at the program's door."""
        self.outcomes[program] = self._end

    def unknown(self) -> list[int]:
        """Those of which nothing is known."""
        return [i for i, outcome in enumerate(self.outcomes) if outcome is None]

    def known(self) -> list[Outcome]:
        """What became of each."""
        return [outcome for outcome in self.outcomes if outcome is not None]
