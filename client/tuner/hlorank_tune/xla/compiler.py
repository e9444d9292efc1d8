"""XLA as a compiler of the tuner: its layouts, and on a CPU its fusions."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from hlorank import HlorankError
from hlorank.checks.arguments import whole_number
from hlorank_tune.compiler import Compiler, Report
from hlorank_tune.measure.fusion.compilation import Compilation, Compiling
from hlorank_tune.measure.host import TOLERANCE, first_line, measure_programs
from hlorank_tune.measure.rounds import Protocol
from hlorank_tune.measure.workers import Worker, WorkerError
from hlorank_tune.run import Run
from hlorank_tune.server import Predictor, default_target
from hlorank_tune.subject import Outcome, ProgramError, Settings, Subject, outcomes_of
from hlorank_tune.tuning import winning_candidate
from hlorank_tune.xla.fusions import FusionProblem
from hlorank_tune.xla.layouts import LayoutProblem
from hlorank_tune.xla.options import OptionProblem
from hlorank_tune.xla.program import Problem, Program

_PROCESS_TRIES = 2
"""Maximum number of repeated stretches, for processor time, which other processes change little."""


class XlaCompiler(Compiler[np.ndarray]):
    """XLA with a program, which it compiles and runs in a process of its own."""

    search = Protocol(warmups=1, rounds=5, most_rounds=32, seconds=0.3, tries=60)
    confirm = Protocol(warmups=1, rounds=4, most_rounds=32, seconds=0.4, tries=40)
    whole: Problem
    tolerance = TOLERANCE
    """Of results, as ``Loader.tolerance``."""

    def __init__(self, program: Program, problem: Problem, threads: int = 1):
        """``threads`` of the program, 0 for as many as XLA uses; models were trained with 1."""
        self.program = program.name
        self.whole = problem
        self._threads = whole_number(threads, "threads")
        self._worker: Worker | None = None

    def open(self, folder: Path) -> None:
        """Prepares the process, whose output goes to a log in the folder."""
        # XLA reads NPROC when it starts.
        variables = {"NPROC": str(self._threads)} if self._threads else {}
        log = folder / "worker.log"
        self._worker = Worker("hlorank_tune.measure.host", log=log, variables=variables)

    def close(self) -> None:
        """Ends the process."""
        if self._worker is not None:
            self._worker.close()

    def identity(self) -> dict[str, Any]:
        """Returns the digest of the program, the threads and the version of jax."""
        return {
            "compiler": "xla",
            "identity": self.whole.identity(),
            "threads": self._threads,
            "jax": version("jax"),
        }

    def version(self) -> str:
        """Returns the version of jax, in which alone a winner is loaded."""
        return f"jax {version('jax')}"

    def target(self) -> str:
        """Names the target of XLA's programs on this machine."""
        return default_target(f"XLA of {self.version()}", self._threads)

    def measure(
        self,
        subject: Subject[np.ndarray],
        candidates: Sequence[np.ndarray],
        protocol: Protocol,
        seconds: float,
        report: Report,
    ) -> list[Outcome]:
        """Lowers, compiles, checks and measures candidates beside the program itself."""
        assert self._worker is not None
        programs: list[Compilation | str] = [self.whole.reference_program]
        for i, candidate in enumerate(candidates):
            report(f"compiling: lowers candidate {i + 1} of {len(candidates)}")
            try:
                programs.append(self.whole.program(candidate))
            # What writes the program of a candidate may raise anything.
            except Exception as error:
                programs.append(f"is not lowered: {first_line(error)}")
        if self.whole.clock == "process":
            tries = min(protocol.tries, _PROCESS_TRIES)
            protocol = replace(protocol, clock="process", tries=tries)
        loader = Compiling(self.whole.arguments, self.tolerance)
        try:
            measured = measure_programs(self._worker, loader, programs, protocol, seconds, report)
        except WorkerError as error:
            raise ProgramError(f"'{self.program}' does not run as it is: {error}") from error
        return outcomes_of(measured)[1:]

    def write(self, run: Run, folder: Path) -> None:
        """Writes nothing beside the results, of which ``executable`` makes the program."""

    def executable(self, folder: str | PathLike[str]) -> Callable[[], list]:
        """Compiles the winner of a folder, which may be the program itself, in this process.

        The returned function runs it on its arguments to the end, and returns flattened results.

        Raises:
            JournalError: if the folder contains no completed run of this program.
        """
        from hlorank_tune.measure.execute import on_device

        winner = winning_candidate(self, Path(folder))
        return self.whole.program(winner).executable(on_device(self.whole.arguments))


class LayoutCompiler(XlaCompiler):
    """Tunes the layouts of a program."""

    task = "layout"

    def __init__(self, program: Program, threads: int = 1):
        super().__init__(program, LayoutProblem(program), threads)


class FusionCompiler(XlaCompiler):
    """Tunes the fusions of a program on XLA:CPU."""

    task = "fusion"
    default_name = "the compiler's own fusions, written out, take"
    whole: FusionProblem

    def __init__(self, program: Program, threads: int = 1):
        """Raises an HlorankError if the program should use several threads."""
        if threads != 1:
            raise HlorankError(
                "chosen fusions run on one thread, so they are compared to a program on one "
                f"thread; --threads is {threads}"
            )
        super().__init__(program, FusionProblem(program), threads)

    def explained(
        self, run: Run, guide: Callable[[Subject[Any]], Predictor[Any]]
    ) -> dict[str, Any]:
        """Returns a row for the journal: the kernels of the default and of the winner.

        A kernel has the name of the instruction that it writes, the number of instructions that it
        computes, and its predicted seconds; the longest comes first. If the server does not answer,
        the row lists no candidate.
        """
        written = [run.default]
        if run.best and run.winner and run.winner.candidate != run.default:
            written.append(run.winner.candidate)
        try:
            found = guide(self.whole).kernels([self.whole.read(one) for one in written])
        except HlorankError:
            found = []
        rows = []
        for candidate, kernels in zip(written, found, strict=False):
            longest_first = sorted(kernels, key=lambda kernel: -kernel.seconds)
            named = [
                {
                    "name": self.whole.node_name(kernel.node),
                    "computed_nodes": kernel.computed_nodes,
                    "seconds": kernel.seconds,
                }
                for kernel in longest_first
            ]
            rows.append({"candidate": candidate, "kernels": named})
        return {"kernels": rows, "seconds": run.seconds}

    def write(self, run: Run, folder: Path) -> None:
        """Writes what ``hlorank_tune.measure.fusion.compilation.load`` compiles and runs."""
        if run.best and run.winner:
            self.whole.save(self.whole.read(run.winner.candidate), folder)

    def use(self, run: Run, folder: Path) -> str:
        """Says how to load the winner."""
        call = f"hlorank_tune.measure.fusion.compilation.load('{folder}')"
        return f"use it: {call}, with {self.version()}" if run.best else ""


class OptionCompiler(XlaCompiler):
    """Tunes the options with which XLA:CPU compiles a program."""

    task = "options"
    settings = Settings(measurements=32, top_k=2)
    whole: OptionProblem

    def __init__(
        self,
        program: Program,
        threads: int = 1,
        with_fast_math: bool = False,
        tolerance: float = TOLERANCE,
    ):
        """``with_fast_math`` also tries what changes results, which may differ by ``tolerance``."""
        super().__init__(program, OptionProblem(program, threads, with_fast_math), threads)
        self.tolerance = tolerance

    def identity(self) -> dict[str, Any]:
        """Also has the tolerance."""
        return super().identity() | {"tolerance": self.tolerance}

    def use(self, run: Run, folder: Path) -> str:
        """Returns the options to paste."""
        if not run.best or run.winner is None:
            return ""
        options = self.whole.options(self.whole.read(run.winner.candidate))
        return f"use it: jax.jit({self.program}, compiler_options={options}), with {self.version()}"
