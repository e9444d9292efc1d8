"""``hlorank-tune --compiler iree``."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from hlorank.errors import HlorankError
from hlorank.measure.atomic_files import file_name
from hlorank.tune.dispatches.report import verdict, write_tile_report
from hlorank.tune.dispatches.settings import TileSettings
from hlorank.tune.dispatches.subject import MLIR_SUFFIXES, StablehloProgram
from hlorank.tune.dispatches.tuner import SPEC_FILE
from hlorank.tune.dispatches.tuning import MODEL, tune_tiles
from hlorank.tune.dispatches.whole_program import replay
from hlorank.tune.duration import duration
from hlorank.tune.program import Program

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
        target=given.target,
        measure=not given.no_measure,
        console=console,
    )
    report = write_tile_report(run, out)
    if run.kept:
        console.print(run.kept, highlight=False, soft_wrap=True)
    console.print(f"{verdict(run)}; {report}", highlight=False, soft_wrap=True)
    if run.spec:
        console.print(
            f"use it: iree-compile --iree-codegen-tuning-spec-path={run.spec} ...",
            highlight=False,
            soft_wrap=True,
        )
    return 0


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
