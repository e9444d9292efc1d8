"""Tunes programs: asks a hlorank server which candidates are fast, and measures the best.

``hlorank.tune.xla``, ``hlorank.tune.iree`` and ``hlorank.tune.halide`` are the compilers. What they
have in common is here: ``compiler.Compiler`` says what a compiler provides, ``search`` tunes with
it, ``journal`` keeps every measurement, and ``report``, which needs matplotlib, writes a page.
"""

from hlorank.search import ServerError
from hlorank.tune.compiler import Compiler
from hlorank.tune.journal import RESULTS_FILE, JournalError
from hlorank.tune.outcome import Outcome
from hlorank.tune.run import Measurement, Run, read_run
from hlorank.tune.settings import Settings
from hlorank.tune.subject import InOrder, Strategy, Subject
from hlorank.tune.tuning import search, side_by_side

__all__ = [
    "RESULTS_FILE",
    "Compiler",
    "InOrder",
    "JournalError",
    "Measurement",
    "Outcome",
    "Run",
    "ServerError",
    "Settings",
    "Strategy",
    "Subject",
    "read_run",
    "search",
    "side_by_side",
]
