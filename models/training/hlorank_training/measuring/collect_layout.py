"""Measures the run times of layouts: two ModuleTuningData files per graph, resumable.

As in TpuGraphs, ``random`` has uniform draws, and ``default`` has the configurations of a genetic
search that starts from the compiler's choice. Both are measured together and begin with it.
"""

import time
from collections.abc import Callable, Sequence
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
from hlorank_tune.measure.execute import backend, flat_arguments, lower
from hlorank_tune.measure.fusion.compilation import Compilation
from hlorank_tune.measure.host import Measured, measure_programs
from hlorank_tune.measure.rounds import Protocol
from hlorank_tune.measure.workers import Worker
from hlorank_tune.xla.layouts import LayoutSpace
from tqdm import tqdm

from hlorank_training.measuring.provenance import Collection, load_average, record
from hlorank_training.measuring.xla_programs import WORKER, CompilingEvenly, timing_of
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
_QUICK = Protocol(warmups=0, rounds=2, seconds=0)
"""Protocol of the genetic search; labels are measured separately."""
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
    """The configurations of one graph; the first is the default."""

    def __init__(self, network: Network, worker: Worker):
        """``worker`` is a new process."""
        self._worker = worker
        self._loader = CompilingEvenly(flat_arguments(network.arguments()))
        self.module = lower(network.name, network.function(), network.arguments())
        self.nodes = configurable_nodes(self.module)
        self.configurations: list[Configuration] = [tuple(UNCHANGED for _ in self.nodes)]
        self.members: dict[str, list[int]] = {name: [0] for name in COLLECTIONS}

    def grow(self, collection: str, count: int, make: Callable[[], Configuration]) -> None:
        """Adds up to ``count`` new configurations to a collection."""
        wanted = len(self.configurations) + count
        for _ in range(_TRIES * count):
            configuration = make()
            if configuration not in self.configurations:
                self.members[collection].append(len(self.configurations))
                self.configurations.append(configuration)
            if len(self.configurations) == wanted:
                break

    def measured(self, members: Sequence[int], protocol: Protocol) -> Measured:
        """Compiles, checks and measures configurations; the first is the default.

        Raises:
            RuntimeError: if a layout changes the results.
        """
        chosen = [self.configurations[member] for member in members]
        modules = [constrained(self.module, self.nodes, one) for one in chosen]
        programs = [Compilation(module.SerializeToString(), "") for module in modules]
        measured = measure_programs(self._worker, self._loader, programs, protocol)
        if "wrong_result" in measured.failures:
            wrong = measured.errors[measured.failures.index("wrong_result")]
            raise RuntimeError(f"a layout changed the results: {wrong}")
        return measured

    def fastest(self, collection: str, count: int) -> list[Configuration]:
        """Returns the fastest of a collection by a short measurement."""
        members = self.members[collection]
        times = self.measured(members, _QUICK).nanoseconds
        fastest = [place for place in np.argsort(times)[:count] if np.isfinite(times[place])]
        return [self.configurations[members[place]] for place in fastest]


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
    with Worker(WORKER) as worker:
        candidates = _Candidates(network, worker)
        _search(candidates, network.name, limits)
        measured = candidates.measured(range(len(candidates.configurations)), protocol)
    details = {
        "refused": sum(map(bool, measured.errors)),
        "configurable_nodes": len(candidates.nodes),
        "rounds_of_both_passes": measured.rounds,
        "load_average_before": load,
        "seconds": time.monotonic() - begin,
    }
    for name, collection in collections.items():
        members = [one for one in candidates.members[name] if not measured.errors[one]]
        timing = timing_of(measured, members)
        record(collection, network.name, network.family, timing, details)
        chosen = [candidates.configurations[one] for one in members]
        data = layout_tuning_data(candidates.module, candidates.nodes, chosen, timing.label())
        write_atomically(collection.path(network.name), data.SerializeToString())


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
