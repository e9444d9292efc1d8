"""Tunes a program for XLA in one call, and runs the winner."""

from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path

from hlorank import Client
from hlorank_tune import tuning
from hlorank_tune.measure.rounds import Protocol
from hlorank_tune.outcome import Outcome
from hlorank_tune.run import Listener, Run
from hlorank_tune.subject import Settings
from hlorank_tune.xla.compiler import compiler_for
from hlorank_tune.xla.program import Program


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
