"""``hlorank-tune --compiler iree``."""

import argparse
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from hlorank.client import Client
from hlorank.errors import HlorankError
from hlorank.iree.compiler import compiler_version
from hlorank.measure.atomic_files import file_name
from hlorank.measure.processor import processor
from hlorank.tune.dispatches.kernel import TilePredictor
from hlorank.tune.dispatches.live import TileLines
from hlorank.tune.dispatches.report import verdict, write_tile_report
from hlorank.tune.dispatches.settings import TileSettings
from hlorank.tune.dispatches.subject import MLIR_SUFFIXES, StablehloProgram
from hlorank.tune.dispatches.tuner import SPEC_FILE, TileRun, TileTuner, replay
from hlorank.tune.journal import Journal
from hlorank.tune.live import duration
from hlorank.tune.program import Program

MODEL = "tile-iree-cpu"
"""The model that ranks by default: those of other tiles do not know IREE's."""
_REFUSED = ("strategy", "record", "report")
"""Options of the search for layouts."""


def tune_with_iree(given: argparse.Namespace, load: Callable[[str], Any]) -> int:
    """Tunes the dispatches of a program, or replays a search; returns the exit code."""
    for option in _REFUSED:
        if getattr(given, option) is not None:
            raise HlorankError(f"--{option} does not apply to --compiler iree")
    if given.no_measure and given.without_model:
        raise HlorankError("--no-measure needs a model: omit --without-model")
    program = _program(given.program, load)
    if given.replay:
        return _replay(program, given.replay)
    out = given.out or Path("tuned") / file_name(program.name)
    console = Console()
    run = tune_tiles(
        program,
        None if given.without_model else given.server,
        out,
        _settings(given),
        model=given.model or MODEL,
        measure=not given.no_measure,
        listener=console,
    )
    report = write_tile_report(run, out)
    console.print(f"{verdict(run)}; {report}", highlight=False, soft_wrap=True)
    if run.spec:
        console.print(
            f"use it: iree-compile --iree-codegen-tuning-spec-path={run.spec} ...",
            highlight=False,
            soft_wrap=True,
        )
    return 0


def tune_tiles(
    program: StablehloProgram,
    server: str | None,
    out: Path,
    settings: TileSettings,
    *,
    model: str = MODEL,
    measure: bool = True,
    listener: Console | None = None,
) -> TileRun:
    """Searches for faster tiles of a program's dispatches, and writes a tuning spec into ``out``.

    Args:
        program: The program.
        server: The address of a server; None draws the measured tiles at random.
        out: Folder of the results. The same call continues a search that was stopped.
        settings: Limits.
        model: The model that ranks, for example ``tile-iree-cpu@1``.
        measure: Whether to measure; without it, the model alone decides.
        listener: A console that shows the progress.

    Raises:
        HlorankError: if the program does not compile or run, or no server answers.
    """
    head = {
        "compiler": f"iree {compiler_version()}",
        "identity": program.identity,
        "processor": processor(),
        "settings": asdict(settings) | {"model": model, "measure": measure},
    }
    lines = TileLines(listener or Console(quiet=True))
    with closing(Journal(out, head)) as journal, lines:
        if server is None:
            return TileTuner(program, None, settings, journal, lines).run()
        with Client(server) as client:
            predictor = TilePredictor(client, model)
            return TileTuner(program, predictor, settings, journal, lines).run(measure)


def _program(name: str, load: Callable[[str], Any]) -> StablehloProgram:
    if name.endswith(MLIR_SUFFIXES):
        return StablehloProgram.from_file(name)
    subject = load(name)
    if not isinstance(subject, Program):
        raise HlorankError(f"{name} is a {type(subject).__name__}, expected a hlorank.tune.Program")
    return StablehloProgram.from_program(subject)


def _settings(given: argparse.Namespace) -> TileSettings:
    return TileSettings(
        measurements=given.measurements or TileSettings.measurements,
        predictions=given.predictions,
        top_k=given.top_k,
        seconds=None if given.minutes is None else 60 * given.minutes,
        seed=given.seed,
    )


def _replay(program: StablehloProgram, folder: Path) -> int:
    spec = folder / SPEC_FILE
    if not spec.exists():
        raise HlorankError(f"{spec} does not exist: the search gained nothing, or is not complete")
    default, tuned = replay(program, spec)
    for name, time in (("IREE's tiles", default), ("tuned", tuned)):
        print(f"{name:<12}  {duration(time):>9}  {time / default:.3f}")
    return 0
