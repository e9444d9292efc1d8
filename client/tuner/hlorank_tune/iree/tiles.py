"""The tiles of a dispatch: what IREE takes, what the model sees, and which are worth trying."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from hlorank_tune.measure.schema import Tile

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
class Dimension:
    """A dimension of the result of a dispatch."""

    extent: int
    loop: int | None
    """The loop of the root that it follows; None for a dimension that is not tiled."""


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
    result: tuple[Dimension, ...]
    """The dimensions of what the dispatch stores, most major first."""
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

        Output bounds are the distribution and input bounds the vector sizes, both of the result's
        dimensions; kernel bounds are the sizes of the reductions, last loop first.
        """
        minor_first = self.result[::-1]
        reductions = [
            Dimension(loop.extent, i) for i, loop in enumerate(self.loops) if loop.is_reduction
        ]
        return Tile(
            _bounds(sizes.distribution, minor_first),
            _bounds(sizes.reduction, reductions[::-1]),
            _bounds(sizes.vector, minor_first),
        )

    @property
    def minor(self) -> int | None:
        """The loop of the result's most minor dimension that is tiled."""
        return next((d.loop for d in self.result[::-1] if d.loop is not None), None)

    def draw(self, random: np.random.Generator, count: int) -> list[TileSizes]:
        """Draws distinct tiles other than the default; fewer if there are not as many.

        A third of them differ from the default in one or two loops.
        """
        return self._distinct(random, count, lambda: self._redrawn(random, self.default, 1 / 3))

    def neighbours(
        self, random: np.random.Generator, tiles: Sequence[TileSizes], count: int
    ) -> list[TileSizes]:
        """Draws distinct tiles that differ from one of ``tiles`` in one or two loops."""
        return self._distinct(
            random, count, lambda: self._redrawn(random, tiles[random.integers(len(tiles))], 1)
        )

    def _distinct(
        self, random: np.random.Generator, count: int, draw: Callable[[], TileSizes]
    ) -> list[TileSizes]:
        drawn: dict[Tile, TileSizes] = {self.tile(self.default): self.default}
        for _ in range(_ATTEMPTS * count):
            if len(drawn) > count:
                break
            sizes = draw()
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

    def _redrawn(self, random: np.random.Generator, sizes: TileSizes, near: float) -> TileSizes:
        """Returns a tile with other sizes of all loops; as often as ``near``, of one or two."""
        count = len(self.loops)
        is_large = random.random() < _LARGE
        loops: Sequence[int] = range(count)
        if random.random() < near:
            few = min(count, int(random.integers(1, 3)))
            loops = random.choice(count, few, replace=False).tolist()
        for i in loops:
            sizes = self._redrawn_loop(random, sizes, i, is_large)
        return sizes

    def _redrawn_loop(
        self, random: np.random.Generator, sizes: TileSizes, i: int, is_large: bool
    ) -> TileSizes:
        extent = self.loops[i].extent
        if self.loops[i].is_reduction:
            step = _size(random, extent, _REDUCTION_SIZES)
            return replace(sizes, reduction=self._step(sizes.reduction, i, step))
        powers = [2**k for k in range(extent.bit_length()) if 2**k < extent]
        divisors = (d for d in range(1, extent + 1) if extent % d == 0)
        whole = _size(random, extent, sorted({*powers, *divisors}), is_large)
        vector = _size(random, whole, _VECTOR_SIZES, is_large and i == self.minor)
        return replace(
            sizes,
            distribution=_set(sizes.distribution, i, whole),
            vector=self._step(sizes.vector, i, vector),
        )

    def _step(self, sizes: tuple[int, ...], i: int, size: int) -> tuple[int, ...]:
        return sizes if self.keeps_ones and sizes[i] == 1 else _set(sizes, i, size)


def _bounds(sizes: tuple[int, ...], dimensions: Sequence[Dimension]) -> tuple[int, ...]:
    """Returns the size of every dimension; what is left whole has the size of its extent."""
    return tuple(
        min((d.loop is not None and sizes[d.loop]) or d.extent, d.extent) for d in dimensions
    )


def _set(sizes: tuple[int, ...], i: int, size: int) -> tuple[int, ...]:
    return (*sizes[:i], size, *sizes[i + 1 :])


def _size(
    random: np.random.Generator, extent: int, choices: Sequence[int], prefers_large: bool = False
) -> int:
    """Draws a size of at most the extent, which it usually divides."""
    fitting = [size for size in choices if size <= extent]
    dividing = [size for size in fitting if extent % size == 0]
    chosen = dividing if random.random() < _DIVIDES else fitting
    weights = np.arange(1, len(chosen) + 1) ** 2 if prefers_large else np.ones(len(chosen))
    return int(random.choice(chosen, p=weights / weights.sum()))
