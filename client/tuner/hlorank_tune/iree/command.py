"""The options of ``hlorank-tune iree``."""

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hlorank_tune.iree.tile_compiler import IreeCompiler

SUMMARY = "tunes the tiles of every dispatch of a program, and writes a tuning spec for IREE"
FILE = "StableHLO text (.mlir), or a hlorank_tune.xla.Program as FILE.py:NAME or MODULE:NAME"
MEASUREMENTS = "8 tiles of each dispatch beside IREE's own"
EXAMPLES = (("iree model.py:program", "tiles of IREE's dispatches: spec.mlir"),)
EXTRA = "[iree]"


def add_options(parser: argparse.ArgumentParser) -> None:
    """IREE has no options of its own."""


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
