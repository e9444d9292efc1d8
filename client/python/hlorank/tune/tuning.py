"""Tunes a program in one call."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import asdict, replace
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from hlorank.client import Client
from hlorank.errors import HlorankError
from hlorank.measure.processor import processor
from hlorank.measure.rounds import Protocol
from hlorank.model import model_reference
from hlorank.search import Kept, connect, default_target
from hlorank.tune.fusion.explain import explained
from hlorank.tune.fusion.problem import FusionProblem
from hlorank.tune.hardware import CONFIRM, Hardware, Outcome, by_clock
from hlorank.tune.journal import Journal, JournalError
from hlorank.tune.predictor import Predictor
from hlorank.tune.problem import LayoutProblem, Problem, TileProblem
from hlorank.tune.program import FusionProgram, Program, TiledKernel
from hlorank.tune.run import Listener, Run, read_run
from hlorank.tune.search import STRATEGIES, Settings, Tuner
from hlorank.tune.trace import Trace
from hlorank.tune.worker import Setting

TOLERANCE = 1e-3
"""Maximum difference of results: a convolution in another layout adds in another order."""
SLOW = 3.0
"""Programs slower than the user's by more than this factor are not measured in rounds."""


def tune(
    subject: Program | TiledKernel,
    server: str | Client | None,
    out: str | PathLike[str],
    settings: Settings | None = None,
    *,
    model: str | None = None,
    target: str | None = None,
    threads: int = 1,
    record: str | PathLike[str] | None = None,
    listener: Listener = lambda _: None,
) -> Run:
    """Searches for faster layouts or fusions of a program, or faster tiles of a kernel.

    Args:
        subject: The program, whose fusions are tuned if it is a ``FusionProgram``; or the kernel.
        server: An address such as ``127.0.0.1:7070``, or a client, for example with credentials;
            None searches without a model, by measurements alone.
        out: Folder of the results. The same call continues a search that was stopped.
        settings: Strategy and limits; None for the defaults of the task.
        model: For example ``layout-xla-cpu@3``; None for the server's default.
        target: The name of hardware, compiler and flags under which the server keeps what is
            measured, and learns from it in later searches; None names the processor, the version
            of jax and the threads.
        threads: Threads of the program; 0 for as many as XLA uses.
        record: New file for a trace of the calls, which ``hlorank bench --trace`` replays.
        listener: Called with the state of the run after every change, and in every phase.

    Raises:
        FileExistsError: if ``record`` exists.
        HardwareError: if the program does not run as it is.
        JournalError: if the folder contains another run.
        ServerError: if the server does not rank the program, before anything is measured.
        HlorankError: if the program has no candidates.
        ValueError: if ``model`` is not a valid model reference.
    """
    if model is not None:
        model_reference(model)
    problem = problem_of(subject)
    settings = replace(settings or default_settings(problem), with_model=server is not None)
    folder = Path(out)
    with (
        closing(Journal(folder, describe(problem, settings, model, threads))) as journal,
        _recording(record, problem) as trace,
        measuring(problem, folder, threads) as hardware,
        _connected(server) as client,
    ):
        kept = Kept(target or xla_target(threads))
        predictor = (
            Predictor(client, problem, kept, model, settings.seed, trace) if client else None
        )
        run = Tuner(problem, hardware, predictor, settings, journal, listener).run()
        run.kept = str(kept)
        if isinstance(problem, FusionProblem) and predictor and run.kernels is None:
            journal.write(row := explained(problem, predictor, run))
            run.add(row)
    if isinstance(problem, FusionProblem) and run.best:
        problem.save(problem.read(run.measurements[run.best].candidate), folder)
    return run


def xla_target(threads: int) -> str:
    """Names the target of XLA's programs on this machine."""
    return default_target(f"XLA of jax {version('jax')}", threads)


def _recording(
    record: str | PathLike[str] | None, problem: Problem
) -> AbstractContextManager[Trace | None]:
    """Returns the trace of calls about a problem, or None without a file."""
    return nullcontext() if record is None else closing(Trace(Path(record), problem.graph))


def _connected(server: str | Client | None) -> AbstractContextManager[Client | None]:
    """Connects to a server; a client that the caller passed stays open."""
    return connect(server) if isinstance(server, str) else nullcontext(server)


def problem_of(subject: Program | TiledKernel) -> Problem:
    """Returns the search problem of a program or a kernel."""
    match subject:
        case FusionProgram():
            return FusionProblem(subject)
        case Program():
            return LayoutProblem(subject)
        case TiledKernel():
            return TileProblem(subject)


def default_settings(problem: Problem) -> Settings:
    """Returns the default settings of a problem's task."""
    return Settings(STRATEGIES[problem.task][0])


def measuring(problem: Problem, folder: Path, threads: int = 1) -> Hardware:
    """Returns the process that measures the programs of one problem.

    Raises:
        HlorankError: if a program whose fusions are chosen should use several threads.
    """
    if problem.task == "fusion" and threads != 1:
        raise HlorankError(
            "chosen fusions run on one thread, so they are compared to a program on one thread; "
            f"--threads is {threads}"
        )
    setting = Setting(problem.compiler, problem.reference, problem.arguments, TOLERANCE, SLOW)
    return Hardware(setting, folder / "worker.log", threads=threads)


def describe(
    problem: Problem, settings: Settings, model: str | None, threads: int
) -> dict[str, Any]:
    """Returns everything that distinguishes one run from another."""
    return {
        "program": problem.name,
        "task": problem.task,
        "subject": problem.subject,
        "default": problem.written(problem.default),
        "identity": problem.identity(),
        **asdict(settings),
        "model": model,
        "threads": threads,
        "processor": processor(),
        "jax": version("jax"),
    }


def replay(
    subject: Program | TiledKernel, folder: str | PathLike[str], *, threads: int = 1
) -> dict[str, Outcome]:
    """Measures the user's program, the default and the winner of a folder again, on this machine.

    Returns outcomes by name: ``program`` or ``function``, ``default`` if it differs, ``winner``.

    Raises:
        JournalError: if the folder contains no completed run of this program.
        HardwareError: if the program does not run as it is.
    """
    return side_by_side(subject, {"winner": folder}, threads=threads)


def side_by_side(
    subject: Program | TiledKernel,
    folders: Mapping[str, str | PathLike[str]],
    *,
    protocol: Protocol = CONFIRM,
    threads: int = 1,
) -> dict[str, Outcome]:
    """Measures the user's program, the default and the winners of folders in the same rounds.

    Returns outcomes by name: ``program`` or ``function``, ``default`` if it differs, and the names
    of the folders. A winner that is the program itself is measured as that.

    Raises:
        JournalError: if a folder contains no completed run of this program.
        HardwareError: if the program does not run as it is.
    """
    problem = problem_of(subject)
    programs = {problem.subject: problem.reference}
    if problem.default.any():
        programs["default"] = problem.program(problem.default)
    for name, folder in folders.items():
        programs[name] = problem.program(_winner(problem, Path(folder)))
    distinct = list(dict.fromkeys(programs.values()))
    with measuring(problem, Path(next(iter(folders.values()))), threads) as hardware:
        outcomes = hardware.measure(distinct, by_clock(protocol, problem.clock))
    return {name: outcomes[distinct.index(program)] for name, program in programs.items()}


def executable(subject: Program | TiledKernel, folder: str | PathLike[str]) -> Callable[[], list]:
    """Compiles the winner of a folder, which may be the user's program, and binds its arguments.

    The returned function runs the program to its end and returns the flattened results.

    Raises:
        JournalError: if the folder contains no completed run of this program.
    """
    problem = problem_of(subject)
    winner = problem.program(_winner(problem, Path(folder)))
    return problem.compiler(problem.arguments).compile(winner)


def _winner(problem: Problem, folder: Path) -> np.ndarray:
    head, run = read_run(folder)
    if head.get("identity") != problem.identity():
        raise JournalError(f"{folder} contains a run of another program, '{run.program}'")
    if run.winner is None:
        raise JournalError(f"{folder} contains a run that is not completed; continue it first")
    return problem.read(run.winner.candidate)
