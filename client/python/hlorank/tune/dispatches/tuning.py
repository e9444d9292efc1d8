"""Tunes the dispatches of a program in one call."""

from contextlib import ExitStack, closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hlorank.client import Client
from hlorank.iree.compiler import compiler_version
from hlorank.measure.processor import processor
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
    measure: bool = True,
    console: "Console | None" = None,
) -> TileRun:
    """Searches for faster tiles of a program's dispatches, and writes a tuning spec into ``out``.

    Args:
        program: The program.
        server: The address of a server; None draws the measured tiles at random.
        out: Folder of the results. The same call continues a search that was stopped.
        settings: Limits.
        model: The model that ranks, for example ``tile-iree-cpu@1``.
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
        predictor = TilePredictor(stack.enter_context(Client(server)), model)
        return TileTuner(program, predictor, settings, journal, listener).run(measure)


def _silent(*_: Any) -> None:
    pass


def _lines(console: "Console") -> Any:
    from hlorank.tune.dispatches.live import TileLines

    return TileLines(console)
