"""The loops of a kernel in Halide, scheduled by a tile.

The output is computed tile by tile. Intermediate values of a tile (partial sums, rows,
exponentials) are computed and kept for that tile only. Indices are in JAX's order, the most major
first.
"""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from math import gcd
from typing import Any

from hlorank_tune.measure.tuning_data import Tile

from hlorank_training.measuring.kernel import Kernel

try:
    import halide as hl
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        "Halide tiles need the package 'halide': .venv/bin/python -m pip install -e '.[halide]'"
    ) from missing

_MAX_LANES = 16
_MAX_ROWS = 4
"""Rows whose partial results stay in registers together."""


@dataclass(frozen=True)
class Combination:
    """A reduction: the function that combines two values, and the initial value."""

    pair: Callable[[Any, Any], hl.Expr]
    initial: Any


SUM = Combination(operator.add, 0.0)
LARGEST = Combination(hl.max, hl.Float(32).min())


class Array:
    """A buffer or a function, indexed with the most major dimension first."""

    def __init__(self, values: hl.Buffer | hl.Func):
        self._values = values

    def __getitem__(self, index) -> hl.Expr:
        return self._values[_innermost_first(index if isinstance(index, tuple) else (index,))]


class LoopNest:
    """The loops of one kernel, scheduled by a tile."""

    def __init__(self, kernel: Kernel, tile: Tile):
        self.loops = [hl.Var(f"d{dimension}") for dimension in range(len(kernel.output))]
        self.reduced = (kernel.reduction,) if kernel.reduction else kernel.fixed_reduction
        self._whole = kernel.output
        self._block = tile.reduction[0] if kernel.reduction else 0
        """Length of the blocks of a tile's reduction; 0 if the reduction is not tiled."""
        names = (loop.name() for loop in self.loops)
        self._lengths = dict(zip(names, tile.output, strict=True))
        self._kept: list[hl.Func] = []

    def keep(self, loops: Sequence[hl.Var], value: hl.Expr) -> Array:
        """Computes a value over some of the loops once per tile."""
        function = hl.Func()
        function[_innermost_first(loops)] = value
        self._vectorise(function, loops[-1])
        self._kept.append(function)
        return Array(function)

    def total(self, loops: Sequence[hl.Var], term: Callable[..., hl.Expr]) -> hl.Expr:
        """Sums ``term(*indices)`` over the reduced dimensions."""
        parts = self._combine(loops, self.reduced, self._block, term, SUM)
        return parts[tuple(loops)]

    def along_row(self, loops: Sequence[hl.Var], term, how: Combination) -> hl.Expr:
        """Combines ``term(index)`` over one dimension whose elements are contiguous in memory.

        It is vectorized along that dimension: the results of the lanes are combined last.
        """
        (length,) = self.reduced
        lane = hl.Var("lane")
        lanes = gcd(self._block or length, _MAX_LANES)
        self._lengths[lane.name()] = lanes
        parts = self._combine(
            [*loops, lane],
            [length // lanes],
            self._block // lanes,
            lambda step: term(step * lanes + lane),
            how,
        )
        return reduce(how.pair, [parts[(*loops, number)] for number in range(lanes)])

    def output(self, value: hl.Expr) -> hl.Func:
        """Returns the whole kernel: loops over tiles, and inside them the loops of one tile."""
        function = hl.Func()
        function[_innermost_first(self.loops)] = value
        tiles = [hl.Var(f"tile_{loop.name()}") for loop in self.loops]
        for loop, tile, length in zip(self.loops, tiles, self._whole, strict=True):
            function.bound(loop, 0, length)
            function.split(loop, tile, loop, self._lengths[loop.name()])
        function.reorder(*_innermost_first(self.loops), *_innermost_first(tiles))
        self._vectorise(function, self.loops[-1])
        for kept in self._kept:
            kept.compute_at(function, tiles[-1])
        return function

    def _combine(self, loops, lengths, block: int, term, how: Combination) -> Array:
        domain = hl.RDom([(0, length) for length in _innermost_first(lengths)])
        indices = [domain[place] for place in range(len(lengths))]
        function = hl.Func()
        place = _innermost_first(loops)
        function[place] = how.initial
        function[place] = how.pair(function[place], term(*_innermost_first(indices)))
        self._vectorise(function, loops[-1])
        self._order(function.update(), loops, indices, block)
        self._kept.append(function)
        return Array(function)

    def _order(self, update: hl.Stage, loops, indices, block: int) -> None:
        """Orders loops: what fits registers inside the reduction, the rest of the tile outside."""
        *others, row, last = loops
        inside = [self._vectorise(update, last), self._unroll(update, row)]
        outside = [last, row, *_innermost_first(others)]
        if block:
            blocks = hl.RVar("blocks")
            update.split(indices[0], blocks, indices[0], block)
            outside.append(blocks)
        update.reorder(*inside, *indices, *outside)

    def _vectorise(self, stage: hl.Func | hl.Stage, loop: hl.Var) -> hl.Var:
        """Vectorizes with a length that divides the tile, so that every lane does useful work."""
        lanes = hl.Var("lanes")
        stage.split(loop, loop, lanes, gcd(self._lengths[loop.name()], _MAX_LANES))
        stage.vectorize(lanes)
        return lanes

    def _unroll(self, stage: hl.Stage, loop: hl.Var) -> hl.Var:
        rows = hl.Var("rows")
        stage.split(loop, loop, rows, gcd(self._lengths[loop.name()], _MAX_ROWS))
        stage.unroll(rows)
        return rows


def _innermost_first(values: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(reversed(values))
