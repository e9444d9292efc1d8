"""Tunes XLA programs: asks a hlorank server which candidates are fast, and measures the best.

>>> from hlorank.tune import Program, tune
>>> program = Program.from_function(step, *arguments)
>>> print(tune(program, "127.0.0.1:7070", "tuned/step"))
"""

from hlorank.tune.hardware import HardwareError, Outcome
from hlorank.tune.journal import JournalError
from hlorank.tune.program import Program, TiledKernel
from hlorank.tune.run import Measurement, Run
from hlorank.tune.search import Settings
from hlorank.tune.tuning import executable, replay, tune
from hlorank.tune.tuning_data import Tile

__all__ = [
    "HardwareError",
    "JournalError",
    "Measurement",
    "Outcome",
    "Program",
    "Run",
    "Settings",
    "Tile",
    "TiledKernel",
    "executable",
    "replay",
    "tune",
]
