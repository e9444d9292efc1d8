"""Programs that XLA compiles, measured as the tuner measures them, but for data to learn from."""

from collections.abc import Sequence
from math import inf

from hlorank_tune.measure.fusion.compilation import Compiling
from hlorank_tune.measure.host import Measured
from hlorank_tune.measure.rounds import Timing

WORKER = "hlorank_tune.measure.host"


class CompilingEvenly(Compiling):
    """Gives slow programs as many rounds as all others."""

    slow = inf


def timing_of(measured: Measured, programs: Sequence[int]) -> Timing:
    """Returns the run times of some programs, the minima of both passes."""
    first, second = (times[None, list(programs)] for times in (measured.first, measured.second))
    return Timing(first, second, measured.repeated, measured.loaded)
