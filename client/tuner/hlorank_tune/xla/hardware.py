"""Measures programs on the machine at hand."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any, Self

from hlorank import HlorankError
from hlorank_tune.measure.fusion.compilation import Compilation
from hlorank_tune.measure.rounds import Progress, Protocol
from hlorank_tune.measure.workers import Worker, WorkerError
from hlorank_tune.subject import MEASURED, SLOW, Outcome
from hlorank_tune.xla.worker import MESSAGE, Compiled, Ended, Measured, Setting, Started

_GRACE_SECONDS = 5.0
"""Time after the end of a measurement at which a process that still compiles is ended."""

SEARCH = Protocol(warmups=1, rounds=5, most_rounds=32, seconds=0.3, tries=60)
"""Protocol of the measurements during a search."""
CONFIRM = Protocol(warmups=1, rounds=4, most_rounds=32, seconds=0.4, tries=40)
"""Protocol of each part of the confirmation, which chooses the winner."""


_PROCESS_TRIES = 2
"""Maximum number of repeated stretches, for processor time."""


def by_clock(protocol: Protocol, clock: str) -> Protocol:
    """Returns the protocol with a clock; processor time hardly waits for a quiet machine."""
    tries = min(protocol.tries, _PROCESS_TRIES) if clock == "process" else protocol.tries
    return replace(protocol, clock=clock, tries=tries)


class HardwareError(HlorankError):
    """The user's program does not compile or run."""


@dataclass(frozen=True)
class Timeouts:
    """Timeouts in seconds."""

    start: float = 300.0
    """To compile and run the user's program."""
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
    worker: Worker = field(init=False)
    """The process."""

    def __post_init__(self) -> None:
        # XLA reads NPROC when it starts.
        variables = {"NPROC": str(self.threads)} if self.threads else {}
        self.worker = Worker("hlorank_tune.xla.worker", log=self.log, variables=variables)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Ends the process."""
        self.worker.close()

    def measure(
        self,
        programs: Sequence[Compilation],
        protocol: Protocol,
        seconds: float = inf,
        report: Callable[[str], None] = lambda _: None,
    ) -> list[Outcome]:
        """Measures programs in the same rounds as the user's program.

        After ``seconds``, the measurement ends with at least one round of each pass. ``report`` is
        called with a description of the phase after every change.

        Raises:
            HardwareError: if the user's program itself does not run.
        """
        return self._measure(
            programs, _Limits(protocol, self.timeouts, monotonic() + seconds), report
        )

    def _measure(
        self, programs: Sequence[Compilation], limits: "_Limits", report: Callable[[str], None]
    ) -> list[Outcome]:
        batch = _Batch(programs)
        if not self._run(batch, limits, report):
            suspects = batch.suspects() if limits.left() else batch.unknown()
            if len(suspects) == 1 or not limits.left():
                for program in suspects:
                    batch.fail(program, is_certain=len(suspects) == 1)
            else:
                for program in suspects:
                    (outcome,) = self._measure([programs[program]], limits, report)
                    batch.outcomes[program] = outcome
            rest = batch.unknown()
            again = self._measure([programs[i] for i in rest], limits, report) if rest else []
            for program, outcome in zip(rest, again, strict=True):
                batch.outcomes[program] = outcome
        return batch.known()

    def _run(self, batch: "_Batch", limits: "_Limits", report: Callable[[str], None]) -> bool:
        """Returns whether the batch was completed."""
        seconds = 0.0
        if not self.worker.is_running():
            self._start(report)
        try:
            self.worker.send((batch.modules, limits.protocol, limits.left()))
            while not batch.is_measured:
                report(batch.phase())
                seconds = batch.timeout(limits)
                batch.take(self.worker.receive(seconds))
        except WorkerError as error:
            if error.failure == "timeout":
                # The end of the search says nothing of the program.
                failure = "timeout" if seconds <= limits.left() else None
                batch.end("timed out", error.detail, failure)
            else:
                batch.end("crashed", error.detail[:MESSAGE], error.failure)
            return False
        return True

    def _start(self, report: Callable[[str], None] = lambda _: None) -> None:
        report("compiling: the program as it is")
        try:
            self.worker.send(self.setting)
            event = self.worker.receive(self.timeouts.start)
            problem = event.message if isinstance(event, Ended) else ""
        except WorkerError as error:
            is_late = error.failure == "timeout"
            problem = f"timeout {error.detail}" if is_late else error.detail[:MESSAGE]
        if problem:
            self.close()
            raise HardwareError(f"the program does not run as it is: {problem}")


@dataclass(frozen=True)
class _Limits:
    protocol: Protocol
    timeouts: Timeouts
    end: float
    """Time of the monotonic clock at which the measurement should end."""

    def left(self) -> float:
        """Returns the seconds until then."""
        return max(0.0, self.end - monotonic())

    def before_end(self, seconds: float) -> float:
        """Returns a timeout that ends shortly after the measurement should, if not before."""
        return min(seconds, self.left() + _GRACE_SECONDS)


class _Batch:
    """The outcomes of the programs of one batch, as far as they are known."""

    def __init__(self, modules: Sequence[Compilation]):
        self.modules = list(modules)
        self.outcomes: list[Outcome | None] = [None] * len(modules)
        self.is_measured = False
        self._running: set[int] = set()
        self._compiled: set[int] = set()
        self._first_runs: dict[int, int] = {}
        self._end: Outcome | None = None
        self._progress = Progress(0)

    def take(self, event: Started | Compiled | Ended | Progress | Measured) -> None:
        match event:
            case Progress():
                self._progress = event
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
                self.outcomes[program] = Outcome(
                    event.problem, message=event.message, failure=event.failure
                )
            case Measured():
                self._finish(event)

    def _finish(self, event: Measured) -> None:
        self.is_measured = True
        for program, single in self._first_runs.items():
            status = MEASURED if program in event.nanoseconds else SLOW
            taken = event.nanoseconds.get(program, single)
            self.outcomes[program] = Outcome(status, taken, event.reference, event.noise)

    def phase(self) -> str:
        """Describes what the process does now."""
        unknown = set(self.unknown())
        count = len(self.modules)
        if left := len(unknown - self._compiled):
            return f"compiling: {count - left} of {count} done"
        if left := len(unknown - self._first_runs.keys()):
            return f"checking results: {count - left} of {count} done"
        if self._progress.load is not None:
            load = f"{self._progress.load:.1f} processors"
            return f"waiting for a quiet machine: other processes use {load}"
        return f"measuring: {self._progress.rounds} rounds of {count} candidates done"

    def timeout(self, limits: _Limits) -> float:
        """Returns the timeout in seconds of the next event."""
        unknown = set(self.unknown())
        if unknown - self._compiled:
            return limits.before_end(limits.timeouts.compile)
        if unknown - self._first_runs.keys():
            return limits.before_end(limits.timeouts.run)
        # All programs are being measured, and the process reports every stretch.
        round_ = sum(self._first_runs.values()) / 1e9 + 1
        return 60 + 4 * (
            limits.protocol.warmups * round_ + round_ + limits.protocol.stretch_seconds
        )

    def end(self, status: str, message: str, failure: str | None) -> None:
        """Stores how the process ended."""
        self._end = Outcome(status, message=message, failure=failure)

    def suspects(self) -> list[int]:
        """Returns the programs that may have ended the process.

        These are the programs in compilation or in their first runs, or else all unknown ones.
        """
        return sorted(self._running) or self.unknown()

    def fail(self, program: int, is_certain: bool) -> None:
        """Assigns the end of the process to a program, which may be one of several suspects."""
        end = self._end
        self.outcomes[program] = end if is_certain or end is None else replace(end, failure=None)

    def unknown(self) -> list[int]:
        """Returns the programs without an outcome."""
        return [i for i, outcome in enumerate(self.outcomes) if outcome is None]

    def known(self) -> list[Outcome]:
        """Returns the outcomes."""
        return [outcome for outcome in self.outcomes if outcome is not None]
