"""Measures fusion configurations of a program as the tuner does, in a process that may die."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from zlib import crc32

import numpy as np
from hlorank_tune.measure.execute import flat_arguments, lower, on_device
from hlorank_tune.measure.fusion.compilation import (
    CHOSEN_FUSION,
    DEFAULT,
    OWN_FUSION,
    Compilation,
)
from hlorank_tune.measure.fusion.kernels import (
    Configuration,
    Kernel,
    drawn,
    greedy,
    neighbour,
    unfused,
)
from hlorank_tune.measure.fusion.prepare import Prepared, prepare
from hlorank_tune.measure.fusion.write import fused_program
from hlorank_tune.measure.host import first_line, measure_programs
from hlorank_tune.measure.rounds import Protocol, Timing
from hlorank_tune.measure.workers import Worker

from hlorank_training.measuring.lone_kernels import empty_program
from hlorank_training.measuring.xla_programs import WORKER, CompilingEvenly, timing_of
from hlorank_training.measuring.zoo import Network

_FLIPS = (1, 2, 4, 8, 16)
_TRIES = 4
"""Maximum draws per wanted configuration, since a small program may run out of new ones."""


@dataclass(frozen=True)
class FusionLimits:
    """Numbers of configurations, besides the compiler's, the greedy and the unfused."""

    random: int = 28
    near: int = 14
    """Configurations that differ from the compiler's in a few bits."""


@dataclass(frozen=True)
class Drawn:
    """A configuration, and how it was found."""

    kind: str
    """``compiler``, ``greedy``, ``unfused``, ``random`` or ``near``"""
    configuration: Configuration


def drawn_fusions(prepared: Prepared, name: str, limits: FusionLimits) -> list[Drawn]:
    """Returns the distinct configurations of a program, the compiler's own first."""
    random = np.random.default_rng(crc32(name.encode()))
    graph = prepared.graph
    own = prepared.compilers
    found: dict[tuple[Kernel, ...], Drawn] = {}

    def add(kind: str, configuration: Configuration) -> None:
        found.setdefault(configuration.kernels, Drawn(kind, configuration))

    def near() -> Configuration:
        return neighbour(graph, own.fused, random, int(random.choice(_FLIPS)))

    add("compiler", own)
    add("greedy", greedy(graph))
    add("unfused", unfused(graph))
    for kind, count, make in (
        ("random", limits.random, partial(drawn, graph, random)),
        ("near", limits.near, near),
    ):
        wanted = len(found) + count
        for _ in range(_TRIES * count):
            if len(found) < wanted:
                add(kind, make())
    return list(found.values())


class ProgramError(RuntimeError):
    """A program has no run times."""


@dataclass(frozen=True)
class EmptyCall:
    """Stands among the compilations of a program for a call that computes nothing."""

    program: Compilation

    def executable(self, arguments: Sequence[Any]) -> Callable[[], Any]:
        """Returns a call of an empty program, with the results of the program."""
        results = self.program.executable(arguments)()
        empty = empty_program(len(arguments))
        nothing = on_device([np.float32(0)] * len(arguments))

        def call() -> Any:
            empty.run(nothing)
            return results

        return call


REFERENCES = ("compiler_default_nanoseconds", "own_fusion_nanoseconds", "call_nanoseconds")
"""What is measured beside the configurations: the compiler's default, the compiler without its
library of matrix kernels, and an empty program."""


@dataclass(frozen=True)
class MeasuredProgram:
    """The run times of a program's configurations."""

    prepared: Prepared
    references: dict[str, int]
    """Nanoseconds of the ``REFERENCES``."""
    drawn: list[Drawn]
    """The configurations that work, the compiler's own first."""
    timing: Timing
    """Of these."""
    rounds: int
    refused: list[tuple[str, str]]
    """The kind of each other configuration, and why it has no run time."""


def measure_program(network: Network, protocol: Protocol, limits: FusionLimits) -> MeasuredProgram:
    """Compiles, checks and measures configurations; one that ends the process is refused.

    Raises:
        ProgramError: if the program itself, or the compiler's own choice, does not work.
        WorkerError: likewise.
    """
    module = lower(network.name, network.function(), network.arguments())
    try:
        prepared = prepare(module)
    # Compilers raise errors of several types.
    except Exception as error:
        raise ProgramError(first_line(error)) from error
    content = module.SerializeToString()
    default = Compilation(content, DEFAULT)
    found = drawn_fusions(prepared, network.name, limits)
    fused = [fused_program(prepared.graph, one.configuration.kernels) for one in found]
    programs = [default, Compilation(content, OWN_FUSION), EmptyCall(default)]
    programs += [Compilation(one.SerializeToString(), CHOSEN_FUSION) for one in fused]
    loader = CompilingEvenly(flat_arguments(network.arguments()))
    with Worker(WORKER) as worker:
        measured = measure_programs(worker, loader, programs, protocol)
    first = len(REFERENCES)
    if reason := next(filter(None, measured.errors[: first + 1]), None):
        raise ProgramError(f"the compiler's own fusions do not work: {reason}")
    errors = measured.errors[first:]
    works = [place for place, error in enumerate(errors) if not error]
    references = timing_of(measured, range(first)).label().tolist()
    return MeasuredProgram(
        prepared,
        dict(zip(REFERENCES, references, strict=True)),
        [found[place] for place in works],
        timing_of(measured, [first + place for place in works]),
        measured.rounds,
        [(one.kind, error) for one, error in zip(found, errors, strict=True) if error],
    )
