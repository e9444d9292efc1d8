"""The tiles of a dispatch: what IREE takes, what the model sees, and which are worth trying."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from hlorank.measure.tuning_data import Tile

MAX_VECTOR = 1024
"""Maximum elements of a vector tile: 64 registers of AVX-512. More make long code."""
MAX_UNROLLED = 2048
"""Maximum elements of a vector tile times its reduction sizes, for the same reason."""
_VECTOR_SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128)
_REDUCTION_SIZES = (1, 2, 4, 8, 16, 32, 64)
MAX_WORKGROUPS = 4096
"""Beyond, starting workgroups takes longer than their work."""
_DIVIDES = 0.8
"""How often a size is drawn from those that divide what they cut."""
_LARGE = 0.75
"""How often larger sizes are preferred, as compilers do, to sizes drawn uniformly."""
_ATTEMPTS = 30
"""Draws for every tile asked for, before a space counts as exhausted."""


@dataclass(frozen=True)
class Loop:
    """A loop of a root operation."""

    extent: int
    is_reduction: bool


@dataclass(frozen=True)
class TileSizes:
    """A tile: one number per loop of the root, in the order of the loops. 0 leaves it whole."""

    distribution: tuple[int, ...]
    """Elements that one workgroup computes; 0 for reductions."""
    vector: tuple[int, ...]
    """Elements that are computed at once, in registers; 0 for reductions."""
    reduction: tuple[int, ...]
    """Steps of a reduction that are computed at once; 0 for parallel loops."""


@dataclass(frozen=True)
class TileSpace:
    """The tiles of a root operation."""

    loops: tuple[Loop, ...]
    output: tuple[int, ...]
    """Loops of the output's dimensions, most major first."""
    default: TileSizes
    """The compiler's choice."""
    keeps_ones: bool = False
    """Whether vector and reduction sizes that are 1 by default must stay 1.

    IREE computes a convolution as one of a single dimension, which these sizes decide.
    """
    operations: int = 1
    """Operations of the dispatch that are unrolled alike: a softmax has three."""

    def tile(self, sizes: TileSizes) -> Tile:
        """Returns the bounds that the model sees, by dimension, most minor first.

        Output bounds are the distribution and input bounds the vector sizes, both of the output's
        dimensions; kernel bounds are the sizes of the reductions, last loop first.
        """
        minor_first = self.output[::-1]
        reductions = [i for i, loop in enumerate(self.loops) if loop.is_reduction][::-1]
        return Tile(
            self._bounds(sizes.distribution, minor_first),
            self._bounds(sizes.reduction, reductions),
            self._bounds(sizes.vector, minor_first),
        )

    def _bounds(self, sizes: tuple[int, ...], loops) -> tuple[int, ...]:
        return tuple(min(sizes[i], self.loops[i].extent) or self.loops[i].extent for i in loops)

    def draw(self, random: np.random.Generator, count: int) -> list[TileSizes]:
        """Draws distinct tiles other than the default; fewer if there are not as many.

        A third of them differ from the default in one or two loops.
        """
        drawn: dict[Tile, TileSizes] = {self.tile(self.default): self.default}
        for _ in range(_ATTEMPTS * count):
            if len(drawn) > count:
                break
            sizes = self._redrawn(random, self._some_loops(random))
            if self.is_compact(sizes) and self.workgroups(sizes) <= MAX_WORKGROUPS:
                drawn.setdefault(self.tile(sizes), sizes)
        return list(drawn.values())[1:]

    def is_compact(self, sizes: TileSizes) -> bool:
        """Returns whether the code of a tile stays short enough to be worth compiling."""
        vector = prod(size or 1 for size in sizes.vector)
        unrolled = vector * prod(size or 1 for size in sizes.reduction)
        return vector <= MAX_VECTOR and unrolled * self.operations <= MAX_UNROLLED

    def workgroups(self, sizes: TileSizes) -> int:
        """Returns the number of workgroups of a tile."""
        pairs = zip(self.loops, sizes.distribution, strict=True)
        return prod(-(-loop.extent // size) for loop, size in pairs if size)

    def _some_loops(self, random: np.random.Generator) -> list[int]:
        """Draws loops that get other sizes than the default's: all, or one or two."""
        count = len(self.loops)
        if random.random() < 1 / 3:
            few = min(count, int(random.integers(1, 3)))
            return random.choice(count, few, replace=False).tolist()
        return list(range(count))

    def _redrawn(self, random: np.random.Generator, loops: list[int]) -> TileSizes:
        """Returns the default with other sizes of some loops."""
        sizes, is_large = self.default, random.random() < _LARGE
        for i in loops:
            extent = self.loops[i].extent
            if self.loops[i].is_reduction:
                reduction = self._step(sizes.reduction, i, _size(random, extent, _REDUCTION_SIZES))
                sizes = replace(sizes, reduction=reduction)
                continue
            whole = _size(random, extent, _distribution_sizes(extent), is_large)
            prefers_large = is_large and i == self.output[-1]
            vector = _size(random, whole, _VECTOR_SIZES, prefers_large)
            sizes = TileSizes(
                _set(sizes.distribution, i, whole),
                self._step(sizes.vector, i, vector),
                sizes.reduction,
            )
        return sizes

    def _step(self, sizes: tuple[int, ...], i: int, size: int) -> tuple[int, ...]:
        return sizes if self.keeps_ones and sizes[i] == 1 else _set(sizes, i, size)


def _set(sizes: tuple[int, ...], i: int, size: int) -> tuple[int, ...]:
    return (*sizes[:i], size, *sizes[i + 1 :])


def _distribution_sizes(extent: int) -> list[int]:
    powers = [2**k for k in range(extent.bit_length()) if 2**k < extent]
    return sorted({*powers, *(d for d in range(1, extent + 1) if extent % d == 0)})


def _size(
    random: np.random.Generator, extent: int, choices: Sequence[int], prefers_large: bool = False
) -> int:
    """Draws a size of at most the extent, which it usually divides."""
    fitting = [size for size in choices if size <= extent]
    dividing = [size for size in fitting if extent % size == 0]
    chosen = dividing if random.random() < _DIVIDES else fitting
    weights = np.arange(1, len(chosen) + 1) ** 2 if prefers_large else np.ones(len(chosen))
    return int(random.choice(chosen, p=weights / weights.sum()))
