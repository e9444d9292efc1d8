"""Tunes programs: asks a hlorank server which candidates are fast, and measures the best.

``hlorank_tune.xla`` and ``hlorank_tune.iree`` are the compilers. What they have in common is here:
``compiler.Compiler`` says what a compiler provides, ``search`` tunes with it, ``journal`` keeps
every measurement, and ``report`` writes a page.
"""

import os

# gRPC prints lines of its own about every failed connection, beside the error that says what to do.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

from hlorank_tune.compiler import Compiler
from hlorank_tune.journal import RESULTS_FILE, JournalError
from hlorank_tune.run import Measurement, Run, read_run
from hlorank_tune.server import ServerError
from hlorank_tune.subject import InOrder, Outcome, ProgramError, Settings, Strategy, Subject
from hlorank_tune.tuning import replay, search

__all__ = [
    "RESULTS_FILE",
    "Compiler",
    "InOrder",
    "JournalError",
    "Measurement",
    "Outcome",
    "ProgramError",
    "Run",
    "ServerError",
    "Settings",
    "Strategy",
    "Subject",
    "read_run",
    "replay",
    "search",
]
