"""``hlorank-tune --compiler halide``."""

import argparse
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console

from hlorank.errors import HlorankError
from hlorank.halide.script import PipelineFunction
from hlorank.measure.atomic_files import file_name
from hlorank.tune.schedules.live import StepBars
from hlorank.tune.schedules.report import table, times, use, verdict
from hlorank.tune.schedules.run import ScheduleSettings
from hlorank.tune.schedules.tuning import tune_schedules
from hlorank.tune.search import Settings

_REFUSED = ("strategy", "minutes", "record", "replay")
_ONLY_DEFAULT = {"predictions": Settings.predictions, "top_k": Settings.top_k, "threads": 1}
"""Options of other searches."""


def tune_with_halide(given: argparse.Namespace) -> int:
    """Tunes the schedule of a pipeline; returns the exit code."""
    _refuse_other_options(given)
    if find_spec("halide") is None:
        raise ModuleNotFoundError("No module named 'halide'", name="halide")
    function = PipelineFunction.parse(given.program, given.param or ())
    out = given.out or Path("tuned") / file_name(function.name)
    settings = ScheduleSettings(
        draws=given.draws or ScheduleSettings.draws,
        measurements=given.measurements or ScheduleSettings.measurements,
        seed=given.seed,
    )
    console = Console()
    server = None if given.without_model else given.server
    with StepBars(console) as bars:
        run = tune_schedules(
            function.name,
            function,
            server,
            out,
            settings,
            model=given.model,
            target=given.target,
            listener=bars,
        )
    for text in filter(None, (table(run), times(run), run.kept, verdict(run), use(run, out))):
        console.print(text, highlight=False, markup=False, soft_wrap=True)
    return 0 if run.fastest else 1


def _refuse_other_options(given: argparse.Namespace) -> None:
    others = [name for name in _REFUSED if getattr(given, name) is not None]
    others += [name for name, value in _ONLY_DEFAULT.items() if getattr(given, name) != value]
    if others:
        option = others[0].replace("_", "-")
        raise HlorankError(f"--{option} does not apply to --compiler halide")
