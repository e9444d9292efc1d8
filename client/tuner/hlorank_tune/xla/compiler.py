"""XLA as a compiler of the tuner: its layouts, and on a CPU its fusions."""

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from hlorank import Client, HlorankError
from hlorank_tune import tuning
from hlorank_tune.compiler import Compiler, Report
from hlorank_tune.measure.fusion.compilation import Compilation
from hlorank_tune.measure.rounds import Protocol
from hlorank_tune.run import Listener, Run
from hlorank_tune.server import Predictor, default_target
from hlorank_tune.subject import Outcome, Settings, Subject
from hlorank_tune.xla.fusions import FusionProblem
from hlorank_tune.xla.hardware import CONFIRM, SEARCH, Hardware, by_clock
from hlorank_tune.xla.layouts import LayoutProblem
from hlorank_tune.xla.problem import Problem
from hlorank_tune.xla.program import FusionProgram, Program
from hlorank_tune.xla.worker import Setting, first_line

TOLERANCE = 1e-3
"""Maximum difference of results: a convolution in another layout adds in another order."""
SLOW = 3.0
"""Programs slower than the user's by more than this factor are not measured in rounds."""


class XlaCompiler(Compiler[np.ndarray]):
    """XLA with a program, which it compiles and runs in a process of its own."""

    search = SEARCH
    confirm = CONFIRM
    whole: Problem

    def __init__(self, program: Program, problem: Problem, threads: int = 1):
        """``threads`` of the program; 0 for as many as XLA uses."""
        self.program = program.name
        self.whole = problem
        self._threads = threads
        self._hardware: Hardware | None = None

    def open(self, folder: Path) -> None:
        """Prepares the process, whose output goes to a log in the folder."""
        whole = self.whole
        setting = Setting(whole.reference_program, whole.arguments, TOLERANCE, SLOW)
        self._hardware = Hardware(setting, folder / "worker.log", threads=self._threads)

    def close(self) -> None:
        """Ends the process."""
        if self._hardware is not None:
            self._hardware.close()

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
        assert self._hardware is not None
        programs: dict[int, Compilation] = {}
        outcomes: dict[int, Outcome] = {}
        for i, candidate in enumerate(candidates):
            report(f"compiling: lowers candidate {i + 1} of {len(candidates)}")
            try:
                programs[i] = self.whole.program(candidate)
            # What writes the program of a candidate may raise anything.
            except Exception as error:
                outcomes[i] = Outcome("lowering failed", message=first_line(error))
        if programs:
            timed = by_clock(protocol, self.whole.clock)
            measured = self._hardware.measure(list(programs.values()), timed, seconds, report)
            outcomes |= dict(zip(programs, measured, strict=True))
        return [outcomes[i] for i in range(len(candidates))]

    def write(self, run: Run, folder: Path) -> None:
        """Writes nothing beside the results, of which ``executable`` makes the program."""

    def executable(self, candidate: np.ndarray) -> Callable[[], list]:
        """Compiles a candidate in this process, and binds the arguments."""
        from hlorank_tune.measure.execute import on_device

        return self.whole.program(candidate).executable(on_device(self.whole.arguments))


class LayoutCompiler(XlaCompiler):
    """Tunes the layouts of a program."""

    task = "layout"
    strategies = ("genetic", "random")

    def __init__(self, program: Program, threads: int = 1):
        super().__init__(program, LayoutProblem(program), threads)


class FusionsCompiler(XlaCompiler):
    """Tunes the fusions of a program on XLA:CPU."""

    task = "fusion"
    strategies = ("annealing", "random")
    default_name = "the compiler's own fusions, written out, take"
    whole: FusionProblem

    def __init__(self, program: FusionProgram, threads: int = 1):
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


def compiler_for(program: Program, threads: int = 1) -> XlaCompiler:
    """Returns the compiler of a program: of fusions if it is a ``FusionProgram``."""
    if isinstance(program, FusionProgram):
        return FusionsCompiler(program, threads)
    return LayoutCompiler(program, threads)


def tune(
    program: Program,
    server: str | Client | None,
    out: str | PathLike[str],
    settings: Settings | None = None,
    *,
    model: str | None = None,
    target: str | None = None,
    threads: int = 1,
    listener: Listener = lambda _: None,
) -> Run:
    """Searches for faster layouts of a program, or faster fusions of a ``FusionProgram``.

    ``threads`` are those of the program, 0 for as many as XLA uses; ``hlorank_tune.search`` says
    what the other arguments are.

    Raises:
        HardwareError: if the program does not run as it is.
        JournalError: if the folder contains another run.
        ServerError: if the server does not rank the program, before anything is measured.
        HlorankError: if the program has no candidates.
        ValueError: if ``model`` is not a valid model reference.
    """
    compiler = compiler_for(program, threads)
    return tuning.search(
        compiler,
        server,
        out,
        settings,
        model=model,
        target=target,
        listener=listener,
    )


def replay(
    program: Program, folder: str | PathLike[str], *, threads: int = 1
) -> dict[str, Outcome]:
    """Measures the program, the default and the winner of a folder again, on this machine.

    Returns outcomes by name: ``program``, ``default`` if it differs, ``winner``.

    Raises:
        JournalError: if the folder contains no completed run of this program.
        HardwareError: if the program does not run as it is.
    """
    return side_by_side(program, {"winner": folder}, threads=threads)


def side_by_side(
    program: Program,
    folders: Mapping[str, str | PathLike[str]],
    *,
    protocol: Protocol | None = None,
    threads: int = 1,
) -> dict[str, Outcome]:
    """Measures the program, the default and the winners of folders in the same rounds.

    Returns outcomes by name: ``program``, ``default`` if it differs, and the names of the folders.
    A winner that is the program itself is measured as that.

    Raises:
        JournalError: if a folder contains no completed run of this program.
        HardwareError: if the program does not run as it is.
    """
    return tuning.side_by_side(compiler_for(program, threads), dict(folders), protocol=protocol)


def executable(program: Program, folder: str | PathLike[str]) -> Callable[[], list]:
    """Compiles the winner of a folder, which may be the program itself, and binds its arguments.

    The returned function runs the program to its end and returns the flattened results.

    Raises:
        JournalError: if the folder contains no completed run of this program.
    """
    compiler = compiler_for(program)
    return compiler.executable(tuning.winning_candidate(compiler, Path(folder)))
