"""Tunes programs for XLA: their layouts, and on a CPU what it computes in one kernel.

>>> from hlorank_tune.xla import Program, tune
>>> program = Program.from_function(step, *arguments)
>>> print(tune(program, "127.0.0.1:7070", "tuned/step"))
"""

from hlorank_tune.xla.compiler import (
    FusionsCompiler,
    LayoutCompiler,
    executable,
    replay,
    side_by_side,
    tune,
)
from hlorank_tune.xla.hardware import HardwareError
from hlorank_tune.xla.program import FusionProgram, Program

__all__ = [
    "FusionProgram",
    "FusionsCompiler",
    "HardwareError",
    "LayoutCompiler",
    "Program",
    "executable",
    "replay",
    "side_by_side",
    "tune",
]
