"""The options of ``hlorank-tune xla``."""

import argparse
import runpy
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from hlorank import HlorankError
from hlorank_tune import values

if TYPE_CHECKING:
    from hlorank_tune.xla.compiler import XlaCompiler
    from hlorank_tune.xla.program import Program

SUMMARY = "tunes the layouts of an XLA program, or what XLA:CPU computes in one kernel"
FILE = (
    "an HLO module before optimization (text, HloModuleProto, HloProto or ModuleTuningData), or a "
    "hlorank_tune.xla.Program as FILE.py:NAME or MODULE:NAME"
)
MEASUREMENTS = "24, the program included"
EXAMPLES = (
    ("xla step.hlo", "layouts of a dumped module"),
    ("xla model.py:program --fusion", "what XLA:CPU computes in one kernel"),
    ("xla step.hlo --without-model", "measurements alone"),
    ("xla step.hlo --replay tuned/step", "measure the winner again"),
)
EXTRA = ""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of XLA."""
    parser.add_argument(
        "--fusion", action="store_true", help="tune the fusions of XLA:CPU in place of layouts"
    )
    add_threads(parser, ", as in the training data")


def add_threads(parser: argparse.ArgumentParser, reason: str = "") -> None:
    """Adds the number of threads, with the reason of its default."""
    parser.add_argument(
        "--threads",
        type=values.natural,
        default=1,
        metavar="N",
        help=f"threads of the program; 0 for as many as XLA uses (default: %(default)s{reason})",
    )


def compiler_of(given: argparse.Namespace) -> "XlaCompiler":
    """Returns XLA with the program that the command line names.

    Raises:
        HlorankError: if it does not exist, or has nothing to choose.
    """
    from hlorank_tune.xla.compiler import FusionCompiler, LayoutCompiler

    kind = FusionCompiler if given.fusion else LayoutCompiler
    return kind(load(given.file), given.threads)


def load(name: str) -> "Program":
    """Loads the program of a file, or of a name in a script ``FILE.py`` or a module.

    Raises:
        HlorankError: if it does not exist, or cannot be imported.
    """
    from hlorank_tune.xla.program import Program

    place, colon, attribute = name.rpartition(":")
    if not colon or Path(name).exists():
        if name.endswith(".py"):
            raise HlorankError(f"add the name of the program in the script, as in {name}:NAME")
        return Program.from_file(name)
    try:
        if place.endswith(".py"):
            # A script finds its own modules beside it.
            sys.path.insert(0, str(Path(place).parent))
            names = runpy.run_path(place, run_name=Path(place).stem)
        else:
            names = vars(import_module(place))
    # The user's script may raise anything.
    except Exception as error:
        message = f"{place} cannot be imported: {type(error).__name__}: {error}"
        raise HlorankError(message) from error
    found = names.get(attribute)
    if not isinstance(found, Program):
        what = f"a {type(found).__name__}" if found is not None else "not defined"
        raise HlorankError(f"{name} is {what}, expected a hlorank_tune.xla.Program")
    return found
