"""Counts how many configurations a search measures until it has found a fast one.

Searches are replayed on measured lists: a server says what to measure next, and the list has the
time. The model's order is what a tuner follows that does not tell the server its measurements.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from hlorank import Adapt, Client, Layouts, MeasuredGraph, Tiles, read_graphs

from hlorank_training.data.prepare import Prepared
from hlorank_training.reports.tables import markdown

WITHIN = (0.05, 0.02, 0.01)
"""By how much the configuration that is found may be slower than the fastest of its list."""
MOST = 64
"""Configurations that a search measures at most."""
_TARGET = "replay"


@dataclass(frozen=True, eq=False)
class Replay:
    """A measured list of one graph, which a server helps to search."""

    client: Client
    measured: MeasuredGraph
    model: str | None
    """None for the default of the task."""

    @property
    def seconds(self) -> np.ndarray:
        """f64 [configs]"""
        return self.measured.run_times * 1e-9

    def by_model(self) -> list[int]:
        """Returns the configurations in the order of the model."""
        configurations = self.measured.configurations
        return self.client.rank(self.measured.graph, configurations, model=self.model).best.tolist()

    def by_suggestions(self, batch: int) -> list[int]:
        """Returns the configurations as the server suggests them, ``batch`` at a time."""
        chosen: list[int] = []
        since, fastest = 0, np.inf
        while len(chosen) < min(MOST, len(self.seconds)):
            adapt = Adapt(_TARGET, self._part(chosen), self.seconds[chosen]) if chosen else None
            suggested = self.client.suggest(
                self.measured.graph,
                self.measured.configurations,
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

    def _part(self, chosen: Sequence[int]) -> Layouts | Tiles:
        configurations = self.measured.configurations
        if isinstance(configurations, Layouts):
            return Layouts(configurations.values()[chosen])
        return Tiles.from_features(configurations.features()[chosen])

    def until(self, order: Sequence[int]) -> list[int]:
        """Returns for each of ``WITHIN`` how many of an order are measured until one is so fast."""
        best = np.minimum.accumulate(self.seconds[list(order[:MOST])])
        enough = [best <= self.seconds.min() * (1 + within) for within in WITHIN]
        return [int(each.argmax()) + 1 if each.any() else MOST + 1 for each in enough]


Orders = dict[str, Callable[[Replay], list[int]]]
ORDERS: Orders = {
    "the model's order": Replay.by_model,
    "suggestions, one at a time": lambda replay: replay.by_suggestions(1),
    "suggestions, 4 at a time": lambda replay: replay.by_suggestions(4),
    "suggestions, 8 at a time": lambda replay: replay.by_suggestions(8),
}


def replayed_search(prepared: Prepared, client: Client, model: str | None) -> str:
    """Returns a table of the searches of all held-out graphs; unseen families by themselves."""
    known = [n for n in prepared.split.test if n not in prepared.split.unseen_family]
    parts = {"held out": known, "of unseen families": prepared.split.unseen_family}
    rows = []
    for part, names in parts.items():
        replays = [Replay(client, _read(prepared, name), model) for name in names]
        rows += list(_rows(f"{len(replays)} {part}", replays))
    return markdown(["lists", "measured next", *(f"within {each:.0%}" for each in WITHIN)], rows)


def _rows(lists: str, replays: Sequence[Replay]) -> Iterator[list[str]]:
    for name, order in ORDERS.items() if replays else ():
        counts = np.array([replay.until(order(replay)) for replay in replays])
        yield [lists, name, *map(_cell, counts.T)]


def _read(prepared: Prepared, name: str) -> MeasuredGraph:
    source = prepared.sources[name]
    return read_graphs(source.file)[source.module or 0]


def _cell(counts: np.ndarray) -> str:
    """Median, 90th percentile and mean."""
    middle, most = np.percentile(counts, [50, 90])
    return f"{middle:.0f} / {most:.0f} / {counts.mean():.1f}"
