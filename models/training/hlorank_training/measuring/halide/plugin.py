"""The autoscheduler's library in Halide's wheel."""

import os
from functools import cache
from pathlib import Path

import halide as hl


def plugin() -> Path:
    """Returns the path of the library."""
    return Path(hl.__file__).parent / "lib64" / "libautoschedule_adams2019.so"


@cache
def load_plugin() -> None:
    """Loads the library, which then prints the graph of every pipeline."""
    # Read before the first call only: printing, and the threads of the cost model.
    os.environ["HL_DEBUG_AUTOSCHEDULE"] = "2"
    os.environ["HL_NUM_THREADS"] = "1"
    # Some loops that a schedule unrolls have no constant extent.
    os.environ["HL_PERMIT_FAILED_UNROLL"] = "1"
    hl.load_plugin(str(plugin()))
