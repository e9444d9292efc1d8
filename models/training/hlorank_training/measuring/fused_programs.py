"""Measures fusion configurations of a program in a process that may die."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from zlib import crc32

import numpy as np
from hlorank_tune.measure.execute import flat_arguments, lower
from hlorank_tune.measure.fusion.graph import FusionGraph
from hlorank_tune.measure.fusion.kernels import (
    Configuration,
    Kernel,
    drawn,
    greedy,
    neighbour,
    unfused,
)
from hlorank_tune.measure.fusion.prepare import Prepared
from hlorank_tune.measure.fusion.write import fused_program
from hlorank_tune.measure.rounds import Protocol, Timing
from hlorank_tune.measure.schema import HloModuleProto
from hlorank_tune.measure.workers import Worker, WorkerError

from hlorank_training.measuring.fusion_worker import Add, Begin, Begun, Failed, Measure
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


WORKER = "hlorank_training.measuring.fusion_worker"
_SECONDS = 120.0
"""How long a program may compile."""
_MEASURE_SECONDS = 1200.0


class ProgramError(RuntimeError):
    """A program has no run times."""


@dataclass
class MeasuredProgram:
    """The run times of a program's configurations."""

    prepared: Prepared
    drawn: list[Drawn] = field(default_factory=list)
    """The configurations that work, the compiler's own first."""
    refused: list[tuple[Drawn, str]] = field(default_factory=list)
    difference: float = 0.0
    timing: Timing | None = None
    """Of the references, and of the configurations that work."""


def measure_program(
    network: Network, worker: Worker, protocol: Protocol, limits: FusionLimits
) -> MeasuredProgram:
    """Compiles, checks and measures configurations; one that ends the process is refused.

    Raises:
        ProgramError: if the program itself, or the compiler's own choice, does not work.
    """
    arguments = flat_arguments(network.arguments())
    module = lower(network.name, network.function(), network.arguments())
    subject = _Subject(worker, Begin(module.SerializeToString(), arguments))
    begun = subject.begin()
    graph = FusionGraph(HloModuleProto.FromString(begun.prepared))
    measured = MeasuredProgram(Prepared(graph, begun.written))
    for one in drawn_fusions(measured.prepared, network.name, limits):
        module = fused_program(graph, one.configuration.kernels).SerializeToString()
        try:
            changed = subject.add(Add(module))
        except ProgramError as error:
            measured.refused.append((one, str(error)))
            continue
        measured.drawn.append(one)
        measured.difference = max(measured.difference, changed)
    if not measured.drawn or measured.drawn[0].kind != "compiler":
        raise ProgramError(f"the compiler's own fusions do not work: {measured.refused[0][1]}")
    measured.timing = subject.ask(Measure(protocol), _MEASURE_SECONDS)
    return measured


class _Subject:
    """The program of a worker process; after a crash it is compiled again."""

    def __init__(self, worker: Worker, program: Begin):
        self._worker = worker
        self._program = program
        self._added: list[Add] = []

    def begin(self) -> Begun:
        return self.ask(self._program, _SECONDS)

    def add(self, request: Add) -> float:
        """Adds a configuration and returns the difference of its results."""
        try:
            changed = self.ask(request, _SECONDS)
        except WorkerError as error:
            self._again()
            raise ProgramError(f"the compiler {error}") from error
        self._added.append(request)
        return changed

    def ask(self, request: Any, seconds: float) -> Any:
        self._worker.send(request)
        answer = self._worker.receive(seconds)
        if isinstance(answer, Failed):
            raise ProgramError(answer.message)
        return answer

    def _again(self) -> None:
        requests: Sequence[Any] = [self._program, *self._added]
        for request in requests:
            self.ask(request, _SECONDS)
