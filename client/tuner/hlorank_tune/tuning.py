"""Tunes a program in one call."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, replace
from functools import cache, partial
from os import PathLike
from pathlib import Path
from typing import Any

from hlorank import Client, Kept
from hlorank.answers.models import model_reference
from hlorank_tune.compiler import Compiler
from hlorank_tune.journal import Journal, JournalError
from hlorank_tune.run import Listener, Run, read_run
from hlorank_tune.search import Search
from hlorank_tune.server import Predictor, connected, processor
from hlorank_tune.subject import Outcome, Settings


def search(
    compiler: Compiler[Any],
    server: str | Client | None,
    out: str | PathLike[str],
    settings: Settings | None = None,
    *,
    model: str | None = None,
    target: str | None = None,
    listener: Listener = lambda _: None,
) -> Run:
    """Searches for a faster configuration of a compiler's program, and writes it into ``out``.

    Args:
        compiler: The compiler with the program. Its processes are ended.
        server: An address such as ``127.0.0.1:7070``, or a client, for example with credentials;
            None searches without a model, by measurements alone.
        out: Folder of the results. The same call continues a search that was stopped, and with more
            measurements or seconds also one that ended.
        settings: Limits; None for the compiler's defaults.
        model: For example ``layout-xla-cpu@3``; None for the compiler's, or the server's default.
        target: The name of hardware, compiler and flags under which the server keeps what is
            measured, and learns from it in later searches; None for ``compiler.target()``.
        listener: Called with the state of the run after every change, and in every phase.

    Raises:
        JournalError: if the folder contains another run.
        ServerError: if the server does not rank the program, before anything is measured.
        HlorankError: if the program does not run as it is, or has no candidates.
        ValueError: if ``model`` is not a valid model reference.
    """
    model = model or compiler.model
    if model is not None:
        model_reference(model)
    settings = replace(settings or compiler.settings, with_model=server is not None)
    folder = Path(out)
    with (
        closing(Journal(folder, describe(compiler, settings, model))) as journal,
        compiler,
        connected(server) as client,
    ):
        # Only now, when the folder is known to be ours and a server answers, processes may start.
        compiler.open(folder)
        kept = Kept(target or compiler.target())
        # What is learned of a subject stays with it.
        guide = cache(partial(Predictor, client, kept, model, settings.seed)) if client else None
        run = Search(compiler, guide, settings, journal, listener).run()
        run.kept = str(kept)
        if guide and run.best is not None and run.kernels is None:
            row = compiler.explained(run, guide)
            if row is not None:
                journal.write(row)
                run.add(row)
        compiler.write(run, folder)
    return run


def describe(compiler: Compiler[Any], settings: Settings, model: str | None) -> dict[str, Any]:
    """Returns everything that distinguishes one run from another."""
    return {
        "program": compiler.program,
        "task": compiler.task,
        "reference": compiler.reference,
        "default": compiler.whole.written(compiler.whole.default),
        "default_name": compiler.default_name,
        **compiler.identity(),
        **asdict(settings),
        "model": model,
        "processor": processor(),
    }


def replay(
    compiler: Compiler[Any],
    folder: str | PathLike[str],
    report: Callable[[str], None] = lambda _: None,
) -> dict[str, Outcome]:
    """Measures the program, the default and the winner of a folder again, on this machine.

    Returns outcomes by name: ``program``, ``default`` if it differs, and ``winner``. A winner that
    is the program itself is measured as that.

    Raises:
        JournalError: if the folder contains no completed run of this program.
        HlorankError: if the program does not run as it is.
    """
    whole = compiler.whole
    candidates = {"program": whole.reference}
    if whole.written(whole.default):
        candidates["default"] = whole.default
    candidates["winner"] = winning_candidate(compiler, Path(folder))
    distinct = {whole.key(candidate): candidate for candidate in candidates.values()}
    with compiler:
        compiler.open(Path(folder))
        measured = compiler.measure(
            whole, list(distinct.values()), compiler.confirm, float("inf"), report
        )
    by_key = dict(zip(distinct, measured, strict=True))
    return {name: by_key[whole.key(candidate)] for name, candidate in candidates.items()}


def winning_candidate(compiler: Compiler[Any], folder: Path) -> Any:
    """Returns the winner of a completed search of the compiler's program.

    Raises:
        JournalError: if the folder contains another run, or one that is not completed.
    """
    head, run = read_run(folder)
    if head.get("identity") != compiler.identity()["identity"]:
        raise JournalError(f"{folder} contains a run of another program, '{run.program}'")
    if run.best is None:
        raise JournalError(f"{folder} contains a run that is not completed; continue it first")
    return compiler.whole.read(run.winner.candidate if run.winner else {})
