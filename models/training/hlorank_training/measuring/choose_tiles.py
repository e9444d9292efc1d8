"""Chooses the tiles of a kernel to measure, and the default tile."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from zlib import crc32

import numpy as np
from hlorank_tune.measure.tuning_data import Tile

from hlorank_training.measuring.kernel import Kernel


@dataclass(frozen=True)
class TileLimits:
    """Limits of the candidates."""

    scratchpad_bytes: int = 128 * 1024
    """Maximum footprint. Without it, the largest tile nearly always wins on a CPU."""
    steps: int = 4096
    """Maximum loop steps. Beyond it, the cost of the loop itself dominates."""
    tiles: int = 18
    """Maximum tiles per kernel, the default included."""


def candidates(kernel: Kernel, limits: TileLimits) -> list[Tile]:
    """Returns every tile within the limits whose sizes divide the dimensions."""
    return [
        tile
        for tile in _divisor_tiles(kernel)
        if kernel.footprint(tile) <= limits.scratchpad_bytes and kernel.steps(tile) <= limits.steps
    ]


def default_tile(kernel: Kernel, tiles: list[Tile]) -> Tile:
    """Returns the tile of the largest footprint; of equals, the longest rows, then reduction."""
    return max(tiles, key=lambda t: (kernel.footprint(t), t.output[::-1], t.reduction))


def choose_tiles(kernel: Kernel, limits: TileLimits, random: np.random.Generator) -> list[Tile]:
    """Returns the default first, then others, drawn uniformly."""
    tiles = candidates(kernel, limits)
    default = default_tile(kernel, tiles)
    others = [tile for tile in tiles if tile != default]
    count = min(limits.tiles - 1, len(others))
    drawn = random.choice(len(others), size=count, replace=False)
    return [default, *(others[i] for i in sorted(drawn))]


def measured_tiles(kernel: Kernel, limits: TileLimits) -> list[Tile]:
    """Chooses tiles with a seed that depends only on the kernel's name."""
    return choose_tiles(kernel, limits, np.random.default_rng(crc32(kernel.name.encode())))


def _divisor_tiles(kernel: Kernel) -> Iterator[Tile]:
    lengths = kernel.output[:-1] if kernel.whole_rows else kernel.output
    tail = kernel.output[-1:] if kernel.whole_rows else ()
    reductions = _divisors(kernel.reduction) if kernel.reduction else [0]
    for *output, reduction in product(*map(_divisors, lengths), reductions):
        yield kernel.tile((*output, *tail), reduction)


def _divisors(length: int) -> list[int]:
    return [d for d in range(1, length + 1) if length % d == 0]
