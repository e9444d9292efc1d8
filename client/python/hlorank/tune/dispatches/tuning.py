"""Tunes the dispatches of a program in one call."""

from contextlib import ExitStack, closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hlorank.iree.compiler import compiler_version
from hlorank.measure.processor import processor
from hlorank.search import Kept, connect, default_target
from hlorank.tune.dispatches.kernel import TilePredictor
from hlorank.tune.dispatches.run import TileRun
from hlorank.tune.dispatches.settings import TileSettings
from hlorank.tune.dispatches.subject import StablehloProgram
from hlorank.tune.dispatches.tuner import TileTuner
from hlorank.tune.journal import Journal

if TYPE_CHECKING:
    from rich.console import Console

MODEL = "tile-iree-cpu"
"""The model that ranks by default: those of other tiles do not know IREE's."""


def tune_tiles(
    program: StablehloProgram,
    server: str | None,
    out: Path,
    settings: TileSettings,
    *,
    model: str = MODEL,
    target: str | None = None,
    measure: bool = True,
    console: "Console | None" = None,
) -> TileRun:
    """Searches for faster tiles of a program's dispatches, and writes a tuning spec into ``out``.

    Args:
        program: The program.
        server: The address of a server; None draws the measured tiles at random.
        out: Folder of the results. The same call continues a search that was stopped.
        settings: Limits.
        model: The model that ranks, for example ``tile-iree-cpu@2``.
        target: The name of hardware, compiler and flags under which the server keeps what is
            measured, and learns from it in later searches; None for ``iree_target()``.
        measure: Whether to measure; without it, the model alone decides.
        console: Shows the progress, if there is one.

    Raises:
        HlorankError: if the program does not compile or run, or no server answers.
    """
    head = {
        "compiler": f"iree {compiler_version()}",
        "identity": program.identity,
        "processor": processor(),
        "settings": asdict(settings) | {"model": model, "measure": measure},
    }
    with ExitStack() as stack:
        journal = stack.enter_context(closing(Journal(out, head)))
        listener = _silent if console is None else stack.enter_context(_lines(console))
        if server is None:
            return TileTuner(program, None, settings, journal, listener).run()
        kept = Kept(target or iree_target())
        client = stack.enter_context(connect(server))
        predictor = TilePredictor(client, model, kept, settings.seed)
        run = TileTuner(program, predictor, settings, journal, listener).run(measure)
        run.kept = str(kept)
        return run


def iree_target() -> str:
    """Names the target of IREE's programs on this machine, which run on one thread."""
    return default_target(f"IREE {compiler_version()}")


def _silent(*_: Any) -> None:
    pass


def _lines(console: "Console") -> Any:
    from hlorank.tune.dispatches.live import TileLines

    return TileLines(console)
