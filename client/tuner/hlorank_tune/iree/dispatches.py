"""The dispatches of a program while they are tuned, and the program that they make up."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from hlorank import Configurations, Graph, Tiles
from hlorank_tune.iree.dispatch import Dispatch, function_of
from hlorank_tune.iree.hlo_text import UnsupportedDispatch
from hlorank_tune.iree.tiles import TileSizes, TileSpace
from hlorank_tune.subject import InOrder, Settings, Subject

_SIZES = ("distribution", "vector", "reduction")


class TunedDispatch(Subject[TileSizes | None]):
    """A dispatch and its tiles. The reference, which is None, is IREE's own choice."""

    reference = None
    predicted_at_once = Settings.predictions

    def __init__(self, dispatch: Dispatch):
        assert dispatch.space is not None
        self.dispatch = dispatch
        self.name = dispatch.name
        self.space: TileSpace = dispatch.space
        # Alone at the root, the compiler's own sizes are another program than its choice.
        self.default = self.space.default
        self.calls = dispatch.calls
        from hlorank_tune.iree.hlo import kernel_hlo

        try:
            with function_of(dispatch.source) as function:
                text = kernel_hlo(function, dispatch.name)
            self.graph = Graph.from_hlo_text(text, task="tile")
        except UnsupportedDispatch:
            self.graph = None

    def strategy(
        self, settings: Settings, random: np.random.Generator, batch: int, steps: int, start: list
    ) -> InOrder[TileSizes]:
        """Returns a strategy that begins near the fastest tiles of ``start``, with half of all."""
        fastest = [tile for tile in start if tile is not None]
        count = settings.predictions
        near = self.space.neighbours(random, fastest, count // 2) if fastest else []
        return InOrder([*near, *self.space.draw(random, count - len(near))], batch)

    def configurations(self, candidates: Sequence[TileSizes | None]) -> Configurations:
        """Converts tiles to what the model ranks."""
        bounds = [self.space.tile(tile) for tile in candidates if tile is not None]
        return Tiles(
            kernel_bounds=[tile.reduction for tile in bounds],
            output_bounds=[tile.output for tile in bounds],
            input_bounds=[tile.input for tile in bounds],
        )

    def is_ranked(self, candidate: TileSizes | None) -> bool:
        """Returns False for the compiler's choice, which is another program than any tile."""
        return candidate is not None

    def key(self, candidate: TileSizes | None) -> Hashable:
        """Returns the bounds: tiles with the same bounds are one to the model."""
        return None if candidate is None else self.space.tile(candidate)

    def written(self, candidate: TileSizes | None) -> dict[str, Any]:
        """Returns the sizes of each level of loops."""
        return {} if candidate is None else asdict(candidate)

    def read(self, written: Mapping[str, Any]) -> TileSizes | None:
        """Converts sizes back."""
        return TileSizes(*(tuple(written[name]) for name in _SIZES)) if written else None


Choices = Mapping[str, TileSizes]
"""Tiles by the name of their dispatch."""


class WholeProgram(Subject[Choices]):
    """A program of which some dispatches have chosen tiles; it is measured, and not searched."""

    graph = None
    reference: Choices = {}  # noqa: RUF012 - nobody changes it
    default: Choices = {}  # noqa: RUF012

    def strategy(self, *_: Any) -> InOrder[Choices]:
        """Proposes nothing."""
        return InOrder([], 1)

    def configurations(self, candidates: Sequence[Choices]) -> Configurations:
        """No model ranks a whole program."""
        raise NotImplementedError

    def key(self, candidate: Choices) -> Hashable:
        """Returns the choices."""
        return tuple(sorted(candidate.items()))

    def written(self, candidate: Choices) -> dict[str, Any]:
        """Returns the sizes by dispatch."""
        return {name: asdict(tile) for name, tile in candidate.items()}

    def read(self, written: Mapping[str, Any]) -> Choices:
        """Converts sizes back."""
        return {
            name: TileSizes(*(tuple(sizes[key]) for key in _SIZES))
            for name, sizes in written.items()
        }
