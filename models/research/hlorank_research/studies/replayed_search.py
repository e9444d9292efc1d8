"""Counts how many configurations a search measures until it has found a fast one.

Searches are replayed on measured lists: a server says what to measure next, and the list has the
time. The model's order is what a search follows that does not tell the server its measurements.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from hlorank import Adapt, Client, Experience, Kept, Layouts, Result, Tiles
from measured import MeasuredGraph, read_graphs

from hlorank_training.data.prepare import Prepared
from hlorank_training.reports.tables import markdown

WITHIN = (0.05, 0.02, 0.01)
"""By how much the configuration that is found may be slower than the fastest of its list."""
MOST = 64
"""Configurations that a search measures at most."""
AT_ONCE = 4
"""Configurations that the tuner measures in a round."""
TARGET = "replay"


@dataclass(frozen=True, eq=False)
class Replay:
    """A measured list of one graph, which a server helps to search."""

    client: Client
    measured: MeasuredGraph
    model: str | None
    """None for the default of the task."""
    configurations: Layouts | Tiles
    """The distinct ones."""
    seconds: np.ndarray
    """f64 [configs]: mean run time of each"""

    @classmethod
    def of(cls, client: Client, measured: MeasuredGraph, model: str | None) -> "Replay":
        """Combines repeated measurements of a configuration."""
        rows = _rows_of(measured.configurations)
        _, first, place = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        place = place.ravel()
        sums = np.bincount(place, measured.run_times * 1e-9)
        order = np.argsort(first)
        configurations = _part(measured.configurations, first[order])
        return cls(client, measured, model, configurations, (sums / np.bincount(place))[order])

    def by_model(self) -> list[int]:
        """Returns the configurations in the order of the model."""
        graph = self.measured.graph
        return self.client.rank(graph, self.configurations, model=self.model).best.tolist()

    def by_tuner(self) -> list[int]:
        """Returns the configurations in the order of the tuner, a few at a time."""
        # Not reported: a list teaches nothing about itself.
        kept = Kept(TARGET, is_off=True)
        experience = Experience(self.client, self.measured.graph, self._part, kept, self.model)
        chosen: list[int] = []
        while left := sorted(set(range(len(self.seconds))).difference(chosen)):
            order, _ = experience.order(left, AT_ONCE)
            following = [left[place] for place in order[:AT_ONCE]]
            experience.add(following, [Result(self.seconds[config]) for config in following])
            chosen += following
            if len(chosen) >= MOST:
                break
        return chosen

    def by_suggestions(self, batch: int) -> list[int]:
        """Returns the configurations as the server suggests them, ``batch`` at a time."""
        chosen: list[int] = []
        since = 0
        fastest = np.inf
        while len(chosen) < min(MOST, len(self.seconds)):
            adapt = Adapt(TARGET, self._part(chosen), self.seconds[chosen]) if chosen else None
            suggested = self.client.suggest(
                self.measured.graph,
                self.configurations,
                adapt=adapt,
                count=batch,
                since_improvement=since,
                model=self.model,
            )
            if not suggested.suggestions:
                break
            for config in suggested.configs.tolist():
                chosen.append(config)
                since = 0 if self.seconds[config] < fastest else since + 1
                fastest = min(fastest, self.seconds[config])
        return chosen

    def report(self, count: int) -> bytes:
        """Reports some measurements, drawn at random; returns the hash of the graph."""
        every = np.random.default_rng(0).permutation(len(self.seconds))[:count]
        adapt = Adapt(TARGET, self._part(every), self.seconds[every])
        return self.client.report_measurements(self.measured.graph, adapt).graph_hash

    def _part(self, chosen: Sequence[int]) -> Layouts | Tiles:
        return _part(self.configurations, chosen)

    def until(self, order: Sequence[int], within: Sequence[float] = WITHIN) -> list[int]:
        """Returns how many of an order are measured until one is within each of ``within``."""
        best = np.minimum.accumulate(self.seconds[list(order[:MOST])])
        enough = [best <= self.seconds.min() * (1 + each) for each in within]
        return [int(each.argmax()) + 1 if each.any() else MOST + 1 for each in enough]


Orders = dict[str, Callable[[Replay], list[int]]]
ORDERS: Orders = {
    "the model's order": Replay.by_model,
    f"the tuner, {AT_ONCE} at a time": Replay.by_tuner,
    "suggestions, one at a time": lambda replay: replay.by_suggestions(1),
    f"suggestions, {AT_ONCE} at a time": lambda replay: replay.by_suggestions(AT_ONCE),
}


@dataclass(frozen=True)
class Replays:
    """What is replayed."""

    model: str | None = None
    """The model that ranks; None for the default of the task."""
    is_unknown: bool = False
    """Whether every list is replayed, because the model learned from none of these."""
    earlier: int = 0
    """Measurements that the server keeps of every other list."""
    within: tuple[float, ...] = WITHIN


def replayed_search(prepared: Prepared, client: Client, settings: Replays) -> str:
    """Returns a table of the searches of all held-out graphs; unseen families by themselves."""
    if settings.earlier:
        # Of a replay that was stopped, maybe of other hardware.
        client.delete_target(TARGET)
    parts = {"of unknown hardware": sorted(prepared.sources)}
    if not settings.is_unknown:
        unseen = prepared.split.unseen_family
        known = [name for name in prepared.split.test if name not in unseen]
        parts = {"held out": known, "of unseen families": list(unseen)}
    rows = []
    for part, names in parts.items():
        replays = [Replay.of(client, _read(prepared, name), settings.model) for name in names]
        rows += list(_rows(f"{len(replays)} {part}", replays, settings))
    within = (f"within {each * 100:g}%" for each in settings.within)
    return markdown(["lists", "measured next", *within], rows)


def _rows(lists: str, replays: Sequence[Replay], settings: Replays) -> Iterator[list[str]]:
    for name, order in ORDERS.items() if replays else ():
        counts = np.array([each.until(order(each), settings.within) for each in replays])
        yield [lists, name, *map(_cell, counts.T)]
    if replays and settings.earlier:
        counts = np.array(list(_after_others(replays, settings)))
        yield [lists, f"the tuner, after {settings.earlier} of every other", *map(_cell, counts.T)]


def _after_others(replays: Sequence[Replay], settings: Replays) -> Iterator[list[int]]:
    """Replays each list while the server keeps measurements of all others."""
    client = replays[0].client
    hashes = [replay.report(settings.earlier) for replay in replays]
    for replay, graph_hash in zip(replays, hashes, strict=True):
        client.delete_measurements(TARGET, graph_hash)
        yield replay.until(replay.by_tuner(), settings.within)
        replay.report(settings.earlier)
    client.delete_target(TARGET)


def _read(prepared: Prepared, name: str) -> MeasuredGraph:
    source = prepared.sources[name]
    return read_graphs(source.file)[source.module or 0]


def _rows_of(configurations: Layouts | Tiles) -> np.ndarray:
    if isinstance(configurations, Layouts):
        return configurations.values().reshape(len(configurations), -1)
    return configurations.features()


def _part(configurations: Layouts | Tiles, chosen: Sequence[int]) -> Layouts | Tiles:
    if isinstance(configurations, Layouts):
        return Layouts(configurations.values()[chosen])
    return Tiles.from_features(configurations.features()[chosen])


def _cell(counts: np.ndarray) -> str:
    """Median, 90th percentile and mean."""
    middle, most = np.percentile(counts, [50, 90])
    return f"{middle:.0f} / {most:.0f} / {counts.mean():.1f}"
