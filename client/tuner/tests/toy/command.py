"""The options of ``hlorank-tune toy``."""

import argparse

from toy.compiler import ToyCompiler

SUMMARY = "tunes the tiles of a matrix product"
FILE = "rows and columns, such as 64x96"
MEASUREMENTS = "24, the product as it is included"
EXAMPLES = (("toy 64x96", "tiles of a product"),)
EXTRA = "tune"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds nothing."""


def compiler_of(given: argparse.Namespace) -> ToyCompiler:
    """Returns the compiler with a matrix product."""
    rows, columns = map(int, given.file.split("x"))
    return ToyCompiler(rows, columns)
