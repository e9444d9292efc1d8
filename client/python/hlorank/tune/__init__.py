"""Tunes XLA programs: asks a hlorank server which candidates are fast, and measures the best.

What is public is here, and in ``hlorank.tune.report``, which needs matplotlib.

>>> from hlorank.tune import Program, tune
>>> program = Program.from_function(step, *arguments)
>>> print(tune(program, "127.0.0.1:7070", "tuned/step"))
"""

from hlorank.measure.tuning_data import Tile
from hlorank.search import ServerError
from hlorank.tune.dispatches.run import TileRun
from hlorank.tune.dispatches.settings import TileSettings
from hlorank.tune.dispatches.subject import StablehloProgram
from hlorank.tune.dispatches.tuning import tune_tiles
from hlorank.tune.hardware import HardwareError, Outcome
from hlorank.tune.journal import RESULTS_FILE, JournalError
from hlorank.tune.program import FusionProgram, Program, TiledKernel
from hlorank.tune.run import Measurement, Run, read_run
from hlorank.tune.search import Settings
from hlorank.tune.tuning import executable, replay, side_by_side, tune

__all__ = [
    "RESULTS_FILE",
    "FusionProgram",
    "HardwareError",
    "JournalError",
    "Measurement",
    "Outcome",
    "Program",
    "Run",
    "ServerError",
    "Settings",
    "StablehloProgram",
    "Tile",
    "TileRun",
    "TileSettings",
    "TiledKernel",
    "executable",
    "read_run",
    "replay",
    "side_by_side",
    "tune",
    "tune_tiles",
]
