"""A kernel whose tiles are measured: a small array program that runs output tile by output tile.

A kernel is defined once. Its untiled form is the graph that the model sees. Its tiled form, a loop
over output tiles and, inside, over tiles of the reduced dimension, is measured.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import jax.numpy as jnp
import numpy as np
from hlorank_tune.measure.tuning_data import Tile
from jax import lax

Shape = tuple[int, ...]
Window = tuple[Sequence[Any], Shape]
"""Start indices and sizes of a slice of one input."""


@dataclass(frozen=True)
class Kernel:
    """One kernel of a family at one shape."""

    name: str
    family: str
    inputs: tuple[Shape, ...]
    output: Shape
    windows: Callable[[Sequence[Any], Shape, Any, int], list[Window]]
    """Maps (output start, output tile, reduction start, reduction tile) to the slices to read."""
    compute: Callable[..., Any]
    """Maps slices to an output tile, which is a partial sum if the reduction is tiled."""
    reduction: int = 0
    """Length of the reduced dimension that may be tiled; 0 if there is none."""
    finish: Callable[..., Any] | None = None
    """Maps (sum, *slices) to the final output tile."""
    fixed_reduction: Shape = ()
    """Reduced dimensions that a tile always covers whole; reported with every tile."""
    whole_rows: bool = False
    """Whether a tile always covers the last dimension of the output."""

    def arguments(self) -> list[Any]:
        """Returns inputs, the same on every call."""
        random = np.random.default_rng(0)
        return [jnp.asarray(random.standard_normal(s) * 0.1, jnp.float32) for s in self.inputs]

    def whole(self, *arguments):
        """Runs the untiled kernel."""
        out = self.compute(*arguments)
        return self.finish(out, *arguments) if self.finish else out

    def tile(self, output: Shape, reduction: int) -> Tile:
        """Returns the tile configuration of an output tile and a reduction tile."""
        return Tile(output, (reduction,) if self.reduction else self.fixed_reduction)

    def footprint(self, tile: Tile) -> int:
        """Returns the bytes that one step of the loop accesses: input slices and output tile."""
        reduction = tile.reduction[0] if self.reduction else 0
        windows = self.windows([0] * len(self.output), tile.output, 0, reduction)
        return 4 * (sum(prod(size) for _, size in windows) + prod(tile.output))

    def steps(self, tile: Tile) -> int:
        """Returns how many times the loop body runs."""
        tiles = prod(o // t for o, t in zip(self.output, tile.output, strict=True))
        return tiles * (self.reduction // tile.reduction[0] if self.reduction else 1)

    def tiled(self, tile: Tile) -> Callable[..., Any]:
        """Returns the kernel as a loop over the tiles of its output."""
        grid = [o // t for o, t in zip(self.output, tile.output, strict=True)]

        def run(*arguments):
            def body(index, out):
                start = _start(index, grid, tile.output)
                return lax.dynamic_update_slice(out, self._piece(arguments, start, tile), start)

            return lax.fori_loop(0, prod(grid), body, jnp.zeros(self.output, jnp.float32))

        return run

    def _piece(self, arguments, start, tile: Tile):
        length = tile.reduction[0] if self.reduction else 0

        def pieces(step):
            windows = self.windows(start, tile.output, step * length, length)
            return [
                lax.dynamic_slice(array, begin, size)
                for array, (begin, size) in zip(arguments, windows, strict=True)
            ]

        steps = self.reduction // length if self.reduction else 1
        if steps == 1:
            out = self.compute(*pieces(0))
        else:
            zero = jnp.zeros(tile.output, jnp.float32)
            out = lax.fori_loop(0, steps, lambda k, acc: acc + self.compute(*pieces(k)), zero)
        return self.finish(out, *pieces(0)) if self.finish else out


def _start(index, grid: Sequence[int], tile: Shape) -> list[Any]:
    start = []
    for count, size in zip(reversed(grid), reversed(tile), strict=True):
        start.append((index % count) * size)
        index = index // count
    return start[::-1]
