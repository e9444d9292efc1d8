"""Measure the run times of layouts: one ModuleTuningData file per graph, resumable."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import numpy as np
from tqdm import tqdm

from .constrain_layouts import (
    UNCHANGED,
    Configuration,
    configurable_nodes,
    constrained,
    offspring,
    random_configuration,
)
from .execute import Executable, largest_difference
from .files import write_atomically
from .lower import lower
from .measure import Protocol, measure
from .provenance import Collection, load_average, record
from .tuning_data import layout_tuning_data
from .zoo import Network, networks

TOLERANCE = 1e-3


@dataclass(frozen=True)
class LayoutLimits:
    """How many configurations a graph gets."""

    least: int = 40
    most: int = 120
    random_share: float = 0.6
    """The rest are offspring of the fastest, so that good layouts are well covered."""
    parents: int = 8


class _Candidates:
    """The compiled configurations of one graph."""

    def __init__(self, network: Network):
        self.arguments = network.arguments()
        self.module = lower(network.name, network.function(), self.arguments)
        self.nodes = configurable_nodes(self.module)
        self.configurations: list[Configuration] = []
        self.executables: list[Executable] = []
        self.difference, self.refused = 0.0, 0
        self.add(tuple(UNCHANGED for _ in self.nodes))
        self.expected = self.executables[0]()

    def add(self, configuration: Configuration) -> None:
        """Compile a configuration and hold it to the default's results; repeats are dropped."""
        if configuration in self.configurations:
            return
        module = constrained(self.module, self.nodes, configuration)
        try:
            executable = Executable(module, self.arguments)
        except RuntimeError:
            self.refused += 1
            return
        if self.configurations:
            self._check(executable)
        self.configurations.append(configuration)
        self.executables.append(executable)

    def fastest(self, count: int) -> list[Configuration]:
        """The fastest so far by a short measurement."""
        quick = measure(self.executables, Protocol(warmups=0, rounds=2)).label()
        return [self.configurations[i] for i in np.argsort(quick)[:count]]

    def _check(self, executable: Executable) -> None:
        difference = largest_difference(self.expected, executable())
        self.difference = max(self.difference, difference)
        if difference > TOLERANCE:
            raise RuntimeError(f"a layout changed the results by {difference:.1e}")


def collect_layout(folder: Path, minutes: float, protocol: Protocol, limits: LayoutLimits) -> None:
    """Measure every graph of the zoo; the time is shared evenly among those still to do."""
    collection = Collection(folder, "layout", protocol, limits)
    deadline = time.monotonic() + 60 * minutes
    todo = [network for network in networks() if not collection.has(network.name)]
    for done, network in enumerate(tqdm(todo, desc="graphs")):
        seconds = (deadline - time.monotonic()) / (len(todo) - done)
        if seconds < 0:
            break
        _collect(network, collection, seconds)


def _collect(network: Network, collection: Collection, seconds: float) -> None:
    begin, load = time.monotonic(), load_average()
    candidates = _Candidates(network)
    _fill(candidates, network.name, collection, begin + seconds)
    timing = measure(candidates.executables, collection.protocol)
    details = {
        "largest_difference": candidates.difference,
        "refused": candidates.refused,
        "configurable_nodes": len(candidates.nodes),
        "seconds": time.monotonic() - begin,
    }
    record(collection, network.name, network.family, timing, load, details)
    data = layout_tuning_data(
        candidates.module, candidates.nodes, candidates.configurations, timing.label()
    )
    write_atomically(collection.path(network.name), data.SerializeToString())


def _fill(candidates: _Candidates, name: str, collection: Collection, deadline: float) -> None:
    limits: LayoutLimits = collection.limits
    random = np.random.default_rng(crc32(name.encode()))
    begin = time.monotonic()
    middle = begin + limits.random_share * (deadline - begin)
    few, enough = (int(limits.random_share * n) for n in (limits.least, limits.most))
    nodes, protocol = candidates.nodes, collection.protocol
    _grow(
        candidates,
        lambda: random_configuration(nodes, random),
        _Goal(few, enough, middle, protocol),
    )
    parents = candidates.fastest(limits.parents)
    goal = _Goal(limits.least, limits.most, deadline, protocol)
    _grow(candidates, lambda: offspring(parents, nodes, random), goal)


@dataclass(frozen=True)
class _Goal:
    """When there are enough configurations."""

    least: int
    most: int
    deadline: float
    protocol: Protocol

    def reached(self, candidates: _Candidates) -> bool:
        count = len(candidates.configurations)
        late = time.monotonic() + _measuring_seconds(candidates, self.protocol) > self.deadline
        return count >= self.most or (late and count >= self.least)


def _grow(candidates: _Candidates, make: Callable[[], Configuration], goal: _Goal) -> None:
    """Add configurations until the goal is reached; a small graph may run out of new ones."""
    for _ in range(4 * goal.most):
        if goal.reached(candidates):
            return
        candidates.add(make())


def _measuring_seconds(candidates: _Candidates, protocol: Protocol) -> float:
    begin = time.perf_counter()
    candidates.executables[-1]()
    once = time.perf_counter() - begin
    return once * len(candidates.executables) * (protocol.warmups + 2 * protocol.rounds)
