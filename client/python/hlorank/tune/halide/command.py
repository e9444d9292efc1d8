"""The options of ``hlorank-tune halide``."""

import argparse
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

from hlorank.tune import values
from hlorank.tune.settings import Settings

if TYPE_CHECKING:
    from hlorank.tune.halide.compiler import HalideCompiler

SUMMARY = "tunes the schedule of a Halide pipeline"
FILE = "a function that returns a pipeline, or a generator class, as FILE.py:NAME or MODULE:NAME"
MEASUREMENTS = "5 schedules beside the greedy one"
EXAMPLES = (("halide blur.py:blur", "schedules of a pipeline: schedule.h"),)
EXTRA = "halide"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of Halide."""
    parser.add_argument(
        "--draws",
        type=values.count,
        metavar="N",
        help="schedules that are drawn and that the model ranks (default: 32)",
    )
    parser.add_argument(
        "--param",
        action="append",
        metavar="NAME=VALUE",
        help="the value of a GeneratorParam of a generator class; may be repeated",
    )


def settings_of(given: argparse.Namespace, settings: Settings) -> Settings:
    """Returns the settings with those of these options; one round measures everything."""
    top_k = given.top_k or settings.measurements
    return replace(settings, predictions=given.draws or settings.predictions, top_k=top_k)


def compiler_of(given: argparse.Namespace) -> "HalideCompiler":
    """Returns Halide with the pipeline that the command line names.

    Raises:
        HlorankError: if it is not named as it should be.
        ModuleNotFoundError: if Halide is not installed.
    """
    from hlorank.halide.script import PipelineFunction
    from hlorank.tune.halide.compiler import HalideCompiler

    if find_spec("halide") is None:
        raise ModuleNotFoundError("No module named 'halide'", name="halide")
    function = PipelineFunction.parse(given.file, given.param or ())
    return HalideCompiler(function.name, function)
