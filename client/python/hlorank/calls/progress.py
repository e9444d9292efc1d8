"""A line on a terminal that says how far a search is."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Shown(Protocol):
    """Shows how many measurements are made, and the shortest time."""

    def __call__(self, made: int, seconds: float | None) -> None:
        """Writes the line."""


@contextmanager
def progress(measurements: int) -> Iterator[Shown]:
    """Writes one line to standard error, over and over; nothing if that is no terminal."""
    if not sys.stderr.isatty():
        yield lambda made, seconds: None
        return

    def show(made: int, seconds: float | None) -> None:
        fastest = "nothing ran yet" if seconds is None else f"fastest {seconds:.6g} s"
        sys.stderr.write(f"\r{made} of {measurements} measured, {fastest}\x1b[K")
        sys.stderr.flush()

    try:
        yield show
    finally:
        sys.stderr.write("\n")
