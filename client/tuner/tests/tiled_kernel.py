"""Tiles of loops that are written by hand, which no compiler takes: a small space for tests."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np

from hlorank import Graph, HlorankError, Tiles
from hlorank_tune import tuning
from hlorank_tune.measure.schema import Tile
from hlorank_tune.xla.compiler import XlaCompiler
from hlorank_tune.xla.executing import ModuleCompiler
from hlorank_tune.xla.problem import Problem
from hlorank_tune.xla.program import repeatable


@dataclass(frozen=True, eq=False)
class TiledKernel:
    """A function that is also written as loops over tiles, whose sizes are tuned."""

    name: str
    whole: Callable[..., Any]
    """The untiled function: the reference, and the model's graph."""
    tiled: Callable[[Tile], Callable[..., Any]]
    """Returns the function as loops over a tile."""
    arguments: Sequence[Any]
    tiles: Sequence[Tile]
    """The candidates; the first is the default."""


class TileSpace:
    """Numbers of tiles, from 1 in the order of their list; 0 is the untiled function."""

    def __init__(self, tiles: int):
        self._tiles = tiles

    @property
    def default(self) -> np.ndarray:
        """The untiled function."""
        return np.zeros(1, np.int16)

    def everything(self) -> np.ndarray:
        """Every tile in the list's order."""
        return np.arange(1, self._tiles + 1, dtype=np.int16)[:, None]


class Exhaustive:
    """Every candidate, in a random order."""

    def __init__(self, space: TileSpace, random: np.random.Generator, batch: int):
        self._left = random.permutation(space.everything())
        self._batch = batch

    def ask(self) -> np.ndarray:
        batch, self._left = self._left[: self._batch], self._left[self._batch :]
        return batch

    def update(self, candidates: np.ndarray, costs: np.ndarray) -> None:
        """Ignores the costs."""


class TileProblem(Problem):
    """The search for tiles of a kernel, whose program is the untiled function."""

    compiler = ModuleCompiler
    clock = "monotonic"

    def __init__(self, kernel: TiledKernel):
        from hlorank_tune.measure.lower import flat_arguments, lower

        self.arguments = flat_arguments(kernel.arguments)
        self._kernel = kernel
        self._tiles = list(dict.fromkeys(_plain(tile) for tile in kernel.tiles))
        if not self._tiles:
            raise HlorankError(f"'{kernel.name}' has no tiles")
        self.space = TileSpace(len(self._tiles))
        self.default = self.space.everything()[0]
        whole = repeatable(lower(kernel.name, kernel.whole, kernel.arguments))
        self.reference_program = whole.SerializeToString()
        self.graph = Graph.from_hlo_proto(self.reference_program, task="tile")

    def program(self, candidate: np.ndarray) -> bytes:
        from hlorank_tune.measure.lower import lower

        if not candidate[0]:
            return self.reference_program
        kernel = self._kernel
        tiled = kernel.tiled(self._tiles[candidate[0] - 1])
        return repeatable(lower(kernel.name, tiled, kernel.arguments)).SerializeToString()

    def is_ranked(self, candidate: np.ndarray) -> bool:
        return bool(candidate[0])

    def configurations(self, candidates: Sequence[np.ndarray]) -> Tiles:
        tiles = [self._tiles[candidate[0] - 1] for candidate in candidates]
        return Tiles(
            kernel_bounds=[tile.reduction for tile in tiles],
            output_bounds=[tile.output for tile in tiles],
        )

    def written(self, candidate: np.ndarray) -> dict[str, list[int]]:
        if not candidate[0]:
            return {}
        tile = self._tiles[candidate[0] - 1]
        return {"kernel_bounds": list(tile.reduction), "output_bounds": list(tile.output)}

    def read(self, written: dict[str, list[int]]) -> np.ndarray:
        every = [self.space.default, *self.space.everything()]
        return next(candidate for candidate in every if self.written(candidate) == written)

    def identity(self) -> str:
        tiles = repr([(tile.output, tile.reduction) for tile in self._tiles])
        try:
            default = self.program(self.default)
        # The kernel may raise anything; the search reports it.
        except Exception:
            default = b""
        return sha256(self.reference_program + default + tiles.encode()).hexdigest()

    def named(self, name, random, batch, steps, start) -> Exhaustive:
        return Exhaustive(self.space, random, batch)


class TileCompiler(XlaCompiler):
    """Tunes the tiles of a kernel."""

    task = "tile"
    reference = "your function"
    strategies = ("exhaustive",)

    def __init__(self, kernel: TiledKernel):
        super().__init__(kernel, TileProblem(kernel))


def tune_tiles(kernel: TiledKernel, server, out, settings):
    """Tunes a kernel in one call."""
    return tuning.search(TileCompiler(kernel), server, out, settings)


def _plain(tile: Tile) -> Tile:
    """Converts the tile's numbers to Python's int."""
    return Tile(tuple(map(int, tile.output)), tuple(map(int, tile.reduction)))
