"""A dispatch while it is tuned: its graph for the model, its tiles, and what was measured."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from hlorank.client import Client
from hlorank.errors import HlorankError, UnsupportedDispatch
from hlorank.graph import Graph
from hlorank.iree.dispatch import Dispatch, function_of
from hlorank.iree.tiles import TileSizes
from hlorank.measure.tuning_data import Tile
from hlorank.search import Experience, Kept, Result
from hlorank.search.connection import server_error
from hlorank.tiles import Tiles


@dataclass(frozen=True)
class TileOutcome:
    """A measured tile."""

    tile: TileSizes | None
    """None for the compiler's choice."""
    nanoseconds: float | None
    reference: float | None
    """Nanoseconds of the compiler's choice in the same rounds."""
    message: str = ""
    """Why there is no run time."""
    score: float | None = None
    failure: str | None = None
    """What kind of failure that is: one of ``hlorank.adapt.FAILURES``."""

    @property
    def ratio(self) -> float:
        """Run time divided by that of the compiler's choice; infinite without one."""
        works = self.nanoseconds and self.reference
        return self.nanoseconds / self.reference if works else np.inf


@dataclass
class Kernel:
    """A dispatch and its tiles."""

    dispatch: Dispatch
    graph: Graph | None
    """None if the dispatch has no graph, for the reason in ``message``."""
    message: str = ""
    outcomes: list[TileOutcome] = field(default_factory=list)
    default: float | None = None
    """Nanoseconds of the compiler's choice, the first time that it was measured."""

    @classmethod
    def of(cls, dispatch: Dispatch) -> "Kernel":
        """Converts a dispatch for the model."""
        from hlorank.iree.hlo import kernel_hlo

        try:
            with function_of(dispatch.source) as function:
                text = kernel_hlo(function, dispatch.name)
        except UnsupportedDispatch as error:
            return cls(dispatch, None, str(error))
        return cls(dispatch, Graph.from_hlo_text(text, task="tile"))

    @property
    def seconds(self) -> float:
        """Seconds that the program spends in it with the compiler's choice, about."""
        return (self.default or 0) * self.dispatch.calls / 1e9

    @property
    def best(self) -> TileOutcome | None:
        """The fastest tile that was measured; None without one."""
        working = [outcome for outcome in self.outcomes if np.isfinite(outcome.ratio)]
        return min(working, key=lambda outcome: outcome.ratio, default=None)

    def add(self, outcome: TileOutcome) -> None:
        """Adds a measurement."""
        if outcome.tile is None:
            self.default = outcome.nanoseconds
        else:
            self.outcomes.append(outcome)

    def configurations(self, tiles: Sequence[TileSizes]) -> Tiles:
        """Converts tiles to what the model ranks."""
        bounds = [self.bounds(tile) for tile in tiles]
        return Tiles(
            kernel_bounds=[tile.reduction for tile in bounds],
            output_bounds=[tile.output for tile in bounds],
            input_bounds=[tile.input for tile in bounds],
        )

    def bounds(self, tile: TileSizes) -> Tile:
        """Returns the bounds of a tile as the model sees them."""
        assert self.dispatch.space is not None
        return self.dispatch.space.tile(tile)


class TilePredictor:
    """Predicts tiles with the model of a server, which learns from what was measured."""

    def __init__(self, client: Client, model: str, kept: Kept, seed: int = 0):
        self._client, self._model, self._kept, self._seed = client, model, kept, seed
        self._experiences: dict[str, Experience[TileSizes]] = {}

    def check(self, kernel: Kernel) -> None:
        """Asks the server for one prediction.

        Raises:
            ServerError: if the call fails.
        """
        assert kernel.dispatch.space is not None
        try:
            self._experience(kernel).predict([kernel.dispatch.space.default])
        except HlorankError as error:
            raise server_error(error) from error

    def order(
        self, kernel: Kernel, tiles: Sequence[TileSizes], count: int
    ) -> list[tuple[TileSizes, float]]:
        """Returns tiles that were not measured, with their scores, in the order to measure them.

        ``count`` are measured next.

        Raises:
            HlorankError: if a call fails.
        """
        numbers, predicted = self._experience(kernel).order(tiles, count)
        return [(tiles[number], float(predicted.scores[number])) for number in numbers]

    def learn(self, kernel: Kernel, outcomes: Sequence[TileOutcome]) -> None:
        """Learns from measured tiles, and reports them to the server.

        The compiler's choice is left out: its sizes alone, at the root, are another program.
        """
        if kernel.graph is not None:
            measured = [(outcome.tile, _result_of(outcome)) for outcome in outcomes if outcome.tile]
            tiles, results = [tile for tile, _ in measured], [result for _, result in measured]
            self._experience(kernel).add(tiles, results)

    def finish(self) -> None:
        """Reports what was not reported yet, at the end of a search."""
        for experience in self._experiences.values():
            experience.report()

    def _experience(self, kernel: Kernel) -> Experience[TileSizes]:
        found = self._experiences.get(kernel.dispatch.name)
        if found is None:
            assert kernel.graph is not None
            arguments = kernel.configurations, self._kept, self._model, self._seed
            found = Experience(self._client, kernel.graph, *arguments)
            self._experiences[kernel.dispatch.name] = found
        return found


def _result_of(outcome: TileOutcome) -> Result:
    if outcome.nanoseconds:
        return Result(outcome.nanoseconds * 1e-9)
    return Result(failure=outcome.failure)


def proposals(
    kernel: Kernel,
    predictor: TilePredictor | None,
    random: np.random.Generator,
    count: int,
    predictions: int,
) -> list[tuple[TileSizes, float | None]]:
    """Returns the next tiles to measure, with their scores: the best predicted of many.

    Half of the candidates are drawn anew, the others are neighbours of the fastest measured tiles.
    Without a predictor, they are the first that are drawn. The compiler's own sizes come first:
    alone at the root they are another program than its choice.
    """
    space = kernel.dispatch.space
    assert space is not None
    seen = {kernel.bounds(outcome.tile) for outcome in kernel.outcomes if outcome.tile}
    start = [] if seen else [space.default]
    if predictor is None or kernel.graph is None:
        drawn = [*start, *space.draw(random, count + len(seen))]
        new = [tile for tile in drawn if kernel.bounds(tile) not in seen]
        return [(tile, None) for tile in new[:count]]
    new = {kernel.bounds(tile): tile for tile in _candidates(kernel, random, predictions)}
    tiles = [*start, *(tile for bounds, tile in new.items() if bounds not in seen)]
    ordered = predictor.order(kernel, tiles, count)
    first = [(tile, score) for tile, score in ordered if tile in start]
    return [*first, *(pair for pair in ordered if pair not in first)][:count]


def _candidates(kernel: Kernel, random: np.random.Generator, count: int) -> list[TileSizes]:
    space = kernel.dispatch.space
    assert space is not None
    working = sorted(kernel.outcomes, key=lambda outcome: outcome.ratio)[:3]
    fastest = [outcome.tile for outcome in working if outcome.tile and np.isfinite(outcome.ratio)]
    if not fastest:
        return space.draw(random, count)
    near = space.neighbours(random, fastest, count // 2)
    return [*near, *space.draw(random, count - len(near))]
