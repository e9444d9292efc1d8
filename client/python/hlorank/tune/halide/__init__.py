"""Finds a faster schedule of a Halide pipeline than the greedy one of its autoscheduler.

>>> from hlorank.tune import search
>>> from hlorank.tune.halide import HalideCompiler
>>> print(search(HalideCompiler("blur", blur), "127.0.0.1:7070", "tuned/blur"))
"""

from hlorank.tune.halide.compiler import SCHEDULE_FILE, HalideCompiler
from hlorank.tune.halide.ranking import rank_schedules

__all__ = ["SCHEDULE_FILE", "HalideCompiler", "rank_schedules"]
