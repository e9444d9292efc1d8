"""The options of ``hlorank-tune iree``."""

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from hlorank import HlorankError
from hlorank_tune import values
from hlorank_tune.subject import Settings

if TYPE_CHECKING:
    from hlorank_tune.iree.tile_compiler import IreeCompiler

SUMMARY = "tunes the tiles of every dispatch of a program, and writes a tuning spec for IREE"
FILE = "StableHLO text (.mlir), or a hlorank_tune.xla.Program as FILE.py:NAME or MODULE:NAME"
MEASUREMENTS = "8 tiles of each dispatch beside IREE's own"
EXAMPLES = (
    ("iree model.py:program", "tiles of IREE's dispatches: spec.mlir"),
    ("iree model.mlir --no-measure", "the same from the model alone"),
)
EXTRA = "[iree]"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of IREE."""
    parser.add_argument(
        "--predictions",
        type=values.count,
        default=Settings.predictions,
        metavar="N",
        help="tiles that the model ranks before each round of measurements (default: %(default)s)",
    )
    parser.add_argument(
        "--no-measure",
        action="store_true",
        help="write the spec of the tiles that the model puts first, unmeasured",
    )


def settings_of(given: argparse.Namespace, settings: Settings) -> Settings:
    """Returns the settings with those of these options.

    Raises:
        HlorankError: if there is neither a model nor a measurement.
    """
    if given.no_measure and given.without_model:
        raise HlorankError("--no-measure needs a model: omit --without-model")
    return replace(settings, predictions=given.predictions)


def compiler_of(given: argparse.Namespace) -> "IreeCompiler":
    """Returns IREE with the program that the command line names.

    Raises:
        HlorankError: if it does not exist.
    """
    from hlorank_tune.iree.program import MLIR_SUFFIXES, StablehloProgram
    from hlorank_tune.iree.tile_compiler import IreeCompiler
    from hlorank_tune.xla.command import load

    if given.file.endswith(MLIR_SUFFIXES):
        return IreeCompiler(StablehloProgram.from_file(given.file))
    return IreeCompiler(StablehloProgram.from_program(load(given.file)))
