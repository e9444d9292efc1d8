"""The options of ``hlorank-tune options``."""

import argparse
from typing import TYPE_CHECKING

from hlorank_tune import values
from hlorank_tune.measure.host import TOLERANCE
from hlorank_tune.xla.command import add_threads, load

if TYPE_CHECKING:
    from hlorank_tune.xla.compiler import OptionCompiler

SUMMARY = "tunes the options with which XLA:CPU compiles a program"
FILE = "as of hlorank-tune xla"
MEASUREMENTS = "32, the program included"
EXAMPLES = (("options model.py:program", "the compiler_options of jax.jit"),)
EXTRA = ""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds what changes results, and by how much they may change."""
    parser.add_argument(
        "--fast-math",
        action="store_true",
        help="also options that change what is computed, such as of NaN and of tiny numbers",
    )
    parser.add_argument(
        "--tolerance",
        type=values.positive,
        default=TOLERANCE,
        metavar="SHARE",
        help="largest difference of a result, relative to the largest number in it "
        "(default: %(default)s)",
    )
    add_threads(parser)


def compiler_of(given: argparse.Namespace) -> "OptionCompiler":
    """Returns XLA with the program that the command line names.

    Raises:
        HlorankError: if it does not exist.
    """
    from hlorank_tune.xla.compiler import OptionCompiler

    program = load(given.file)
    return OptionCompiler(program, given.threads, given.fast_math, given.tolerance)
