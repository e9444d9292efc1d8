"""Compiles and measures fused programs and kernels in a process of its own, which may die.

XLA aborts on fusions that it cannot generate. ``serve`` answers the requests of this module.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from hlorank_tune.measure.execute import Executable, on_device
from hlorank_tune.measure.fusion.compilation import CHOSEN_FUSION, DEFAULT, OWN_FUSION, Compilation
from hlorank_tune.measure.fusion.prepare import from_compiled
from hlorank_tune.measure.results import largest_difference
from hlorank_tune.measure.rounds import Protocol, Timing, measure
from hlorank_tune.measure.schema import HloModuleProto

from hlorank_training.measuring.lone_kernels import LoneTimes, empty_program, time_kernel

TOLERANCE = 1e-3
"""Maximum difference of results, relative to the largest value of each array."""
REFERENCES = 3
"""Programs that are measured before the configurations: an empty program, the compiler's default,
and the compiler without its library of matrix kernels."""


@dataclass(frozen=True)
class Failed:
    """The reason why a request has no answer."""

    message: str


@dataclass(frozen=True)
class Begun:
    """A program that runs, and its module before fusion."""

    prepared: bytes
    """HloModuleProto"""
    written: frozenset[int]
    """Nodes that the compiler writes to memory."""


@dataclass(frozen=True)
class Begin:
    """Asks to compile a program as it is, and to prepare it."""

    module: bytes
    """HloModuleProto before optimization"""
    arguments: Sequence[np.ndarray]

    def answer(self) -> Begun:
        """Replaces the program of the process."""
        global _program
        _program = _Program(self)
        return _program.begun


@dataclass(frozen=True)
class Add:
    """Asks to compile a configuration of the program, and to check it."""

    module: bytes

    def answer(self) -> float | Failed:
        """Returns the difference of results, or why the configuration is not measured."""
        return _current().add(Compilation(self.module, CHOSEN_FUSION))


@dataclass(frozen=True)
class Measure:
    """Asks to measure the references and the configurations that were added."""

    protocol: Protocol

    def answer(self) -> Timing:
        """Returns the run times."""
        return measure(_current().executables, self.protocol)


@dataclass(frozen=True)
class TimeKernel:
    """Asks to time a lone kernel."""

    module: bytes

    def answer(self) -> LoneTimes:
        """Returns the run times."""
        return time_kernel(HloModuleProto.FromString(self.module))


class _Program:
    def __init__(self, request: Begin):
        module = HloModuleProto.FromString(request.module)
        self._arguments = on_device(request.arguments)
        default, own = (Executable(module, self._arguments, p) for p in (DEFAULT, OWN_FUSION))
        nothing = on_device([np.float32(0)] * len(self._arguments))
        call = partial(empty_program(len(nothing)).run, nothing)
        self.executables: list[Callable[[], Any]] = [call, default, own]
        self._expected = default()
        prepared = from_compiled(own.optimized())
        self.begun = Begun(prepared.graph.module.SerializeToString(), prepared.written)

    def add(self, compilation: Compilation) -> float | Failed:
        executable = compilation.executable(self._arguments)
        changed = largest_difference(self._expected, executable())
        # Not "greater than", since NaN is wrong too.
        if not changed <= TOLERANCE:
            return Failed(f"the results differ by {changed:.1e} of the largest value")
        self.executables.append(executable)
        return changed


_program: _Program | None = None


def _current() -> _Program:
    if _program is None:
        raise RuntimeError("no program was begun in this process")
    return _program


def serve(connection: Connection, request: Any) -> None:
    """Answers one request."""
    try:
        answer = request.answer()
    # Compilers raise errors of several types.
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        answer = Failed(lines[0][:300])
    connection.send(answer)
