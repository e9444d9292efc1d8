"""Measures the run times of layouts: two ModuleTuningData files per graph, resumable.

As in TpuGraphs, ``random`` has uniform draws, and ``default`` has the configurations of a genetic
search that starts from the compiler's choice. Both are measured together and begin with it.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from zlib import crc32

import numpy as np
from hlorank_tune.measure.atomic_files import write_atomically
from hlorank_tune.measure.constrain import (
    UNCHANGED,
    Configuration,
    configurable_nodes,
    constrained,
    layout_tuning_data,
)
from hlorank_tune.measure.execute import Executable, backend, lower
from hlorank_tune.measure.results import largest_difference
from hlorank_tune.measure.rounds import Protocol, Timing, measure
from hlorank_tune.xla.layouts import LayoutSpace
from tqdm import tqdm

from hlorank_training.measuring.provenance import Collection, load_average, record
from hlorank_training.measuring.zoo import Network, networks


def offspring(
    parents: Sequence[Configuration], space: LayoutSpace, random: np.random.Generator
) -> Configuration:
    """Returns a child of two random parents with one to three mutated nodes."""
    first, second = (space.candidate(parents[i]) for i in random.integers(0, len(parents), 2))
    crossed = np.where(random.random(len(first)) < 0.5, first, second)
    return space.configuration(space.mutated(random, crossed[None])[0])


COLLECTIONS = ("random", "default")
PROTOCOL = Protocol(rounds=5, seconds=0)
"""Few rounds, since a graph has many programs that take ten milliseconds or more."""
TOLERANCE = 1e-3
_QUICK = Protocol(warmups=0, rounds=2, seconds=0)
"""Protocol of the genetic search; labels are measured separately."""
_COMPILERS = 2
"""Number of programs compiled in parallel, while nothing is measured."""
_TRIES = 4
"""Maximum draws per wanted configuration, since a small graph may run out of new ones."""


@dataclass(frozen=True)
class LayoutLimits:
    """Maximum configurations of a graph, besides the default."""

    random: int = 64
    generations: int = 2
    children: int = 6
    """Per generation."""
    parents: int = 6


class _Candidates:
    """The compiled configurations of one graph; the first is the default."""

    def __init__(self, network: Network):
        self.arguments = network.arguments()
        self.module = lower(network.name, network.function(), self.arguments)
        self.nodes = configurable_nodes(self.module)
        self.configurations: list[Configuration] = [tuple(UNCHANGED for _ in self.nodes)]
        self.executables = [Executable(self.module, self.arguments)]
        self.members: dict[str, list[int]] = {name: [0] for name in COLLECTIONS}
        self.difference = 0.0
        self.refused = 0
        self._expected = self.executables[0]()

    def grow(self, collection: str, count: int, make: Callable[[], Configuration]) -> None:
        """Adds up to ``count`` new configurations to a collection."""
        fresh = self._draw(count, make)
        with ThreadPoolExecutor(_COMPILERS) as pool:
            compiled = list(pool.map(self._compile, fresh))
        for configuration, executable in zip(fresh, compiled, strict=True):
            if executable is None:
                self.refused += 1
                continue
            self._check(executable)
            self.members[collection].append(len(self.configurations))
            self.configurations.append(configuration)
            self.executables.append(executable)

    def _draw(self, count: int, make: Callable[[], Configuration]) -> list[Configuration]:
        fresh: list[Configuration] = []
        for _ in range(_TRIES * count):
            configuration = make()
            if configuration not in self.configurations and configuration not in fresh:
                fresh.append(configuration)
            if len(fresh) == count:
                break
        return fresh

    def fastest(self, collection: str, count: int) -> list[Configuration]:
        """Returns the fastest of a collection by a short measurement."""
        members = self.members[collection]
        quick = measure([self.executables[i] for i in members], _QUICK).label()
        return [self.configurations[members[i]] for i in np.argsort(quick)[:count]]

    def _compile(self, configuration: Configuration) -> Executable | None:
        """Compiles a configuration; returns None if the compiler rejects it."""
        module = constrained(self.module, self.nodes, configuration)
        try:
            return Executable(module, self.arguments)
        except RuntimeError:
            return None

    def _check(self, executable: Executable) -> None:
        difference = largest_difference(self._expected, executable())
        if not difference <= TOLERANCE:
            raise RuntimeError(f"a layout changed the results by {difference:.1e}")
        self.difference = max(self.difference, difference)


def collect_layout(
    folder: Path,
    minutes: float,
    protocol: Protocol = PROTOCOL,
    limits: LayoutLimits = LayoutLimits(),
) -> None:
    """Measures the zoo's graphs until the time limit; skips graphs whose files exist."""
    collections = {
        name: Collection(folder / name, "layout", protocol, limits, backend())
        for name in COLLECTIONS
    }
    deadline = time.monotonic() + 60 * minutes
    for network in tqdm(networks(), desc="graphs"):
        if time.monotonic() > deadline:
            break
        if not all(collection.has(network.name) for collection in collections.values()):
            _collect(network, collections, protocol, limits)


def _collect(
    network: Network,
    collections: dict[str, Collection],
    protocol: Protocol,
    limits: LayoutLimits,
) -> None:
    begin = time.monotonic()
    load = load_average()
    candidates = _Candidates(network)
    _search(candidates, network.name, limits)
    timing = measure(candidates.executables, protocol)
    details = {
        "largest_difference": candidates.difference,
        "refused": candidates.refused,
        "configurable_nodes": len(candidates.nodes),
        "load_average_before": load,
        "seconds": time.monotonic() - begin,
    }
    for name, collection in collections.items():
        members = candidates.members[name]
        part = timing.of(members)
        record(collection, network.name, network.family, part, details)
        _write(collection.path(network.name), candidates, members, part)


def _search(candidates: _Candidates, name: str, limits: LayoutLimits) -> None:
    random = np.random.default_rng(crc32(name.encode()))
    space = LayoutSpace(candidates.nodes)
    candidates.grow(
        "random", limits.random, lambda: space.configuration(space.random(random, 1)[0])
    )
    parents = candidates.configurations[:1]
    for _ in range(limits.generations):
        child = partial(offspring, parents, space, random)
        candidates.grow("default", limits.children, child)
        parents = candidates.fastest("default", limits.parents)


def _write(path: Path, candidates: _Candidates, members: list[int], timing: Timing) -> None:
    chosen = [candidates.configurations[i] for i in members]
    data = layout_tuning_data(candidates.module, candidates.nodes, chosen, timing.label())
    write_atomically(path, data.SerializeToString())
