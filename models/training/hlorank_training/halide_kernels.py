"""Kernels as Halide loop nests that a tile schedules, compiled to run on one thread.

The output is made tile by tile, and what a tile needs first (partial sums, rows, exponentials)
is computed and kept for that tile alone. Indices are written as in JAX, the major-most first.
"""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from math import gcd, pi, sqrt
from typing import Any

import numpy as np

from .kernel import Kernel
from .tuning_data import Tile

try:
    import halide as hl
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        "tiles of Halide need the package 'halide': .venv/bin/python -m pip install -e '.[halide]'"
    ) from missing

_MOST_LANES = 16
_MOST_ROWS = 4
"""Rows whose partial results stay in registers together."""


def compile_halide(
    kernel: Kernel, tiles: Sequence[Tile], arguments: Sequence[Any]
) -> list[Callable[[], np.ndarray]]:
    """One program per tile; all read the same arrays, so that only the tile differs."""
    inputs = [_buffer(argument) for argument in arguments]
    return [_compile(kernel, tile, inputs) for tile in tiles]


def runs_on_halide(kernel: Kernel) -> bool:
    """Whether the kernel's family has a loop nest here."""
    return kernel.family in _FAMILIES


def _buffer(argument: Any) -> hl.Buffer:
    # Halide takes no read-only array, and does not keep alive the one that it takes.
    array = np.array(argument, np.float32)
    return hl.Buffer(array).copy()


def _compile(kernel: Kernel, tile: Tile, inputs: Sequence[hl.Buffer]) -> Callable[[], np.ndarray]:
    nest = _LoopNest(kernel, tile)
    value = _FAMILIES[kernel.family](nest, *map(_Array, inputs))
    function = nest.output(value)
    function.compile_jit(hl.get_host_target())
    result = np.empty(kernel.output, np.float32)
    buffer = hl.Buffer(result)

    def run() -> np.ndarray:
        function.realize(buffer)
        return result

    return run


@dataclass(frozen=True)
class _Combination:
    """How a reduction combines two values, and what it begins with."""

    pair: Callable[[Any, Any], hl.Expr]
    initial: Any


_SUM = _Combination(operator.add, 0.0)
_LARGEST = _Combination(hl.max, hl.Float(32).min())


class _Array:
    """A buffer or a function, indexed the major-most dimension first."""

    def __init__(self, values: hl.Buffer | hl.Func):
        self._values = values

    def __getitem__(self, index) -> hl.Expr:
        return self._values[_innermost_first(index if isinstance(index, tuple) else (index,))]


class _LoopNest:
    """The loops of one kernel, scheduled by a tile."""

    def __init__(self, kernel: Kernel, tile: Tile):
        self.loops = [hl.Var(f"d{dimension}") for dimension in range(len(kernel.output))]
        self.reduced = (kernel.reduction,) if kernel.reduction else kernel.fixed_reduction
        self._whole = kernel.output
        self._block = tile.reduction[0] if kernel.reduction else 0
        """Length of the pieces in which a tile's reduction is done; 0 where it is not cut."""
        names = (loop.name() for loop in self.loops)
        self._lengths = dict(zip(names, tile.output, strict=True))
        self._kept: list[hl.Func] = []

    def keep(self, loops: Sequence[hl.Var], value: hl.Expr) -> _Array:
        """A value over some of the loops, computed once per tile."""
        function = hl.Func()
        function[_innermost_first(loops)] = value
        self._vectorise(function, loops[-1])
        self._kept.append(function)
        return _Array(function)

    def total(self, loops: Sequence[hl.Var], term: Callable[..., hl.Expr]) -> hl.Expr:
        """The sum of ``term(*indices)`` over the reduced dimensions."""
        parts = self._combine(loops, self.reduced, self._block, term, _SUM)
        return parts[tuple(loops)]

    def along_row(self, loops: Sequence[hl.Var], term, how: _Combination) -> hl.Expr:
        """``term(index)`` combined over one dimension whose elements are neighbours in memory.

        Vectors run along it: every lane has a result of its own, and those are combined last.
        """
        (length,) = self.reduced
        lane, lanes = hl.Var("lane"), gcd(self._block or length, _MOST_LANES)
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
        """The whole kernel: loops over tiles, and inside them the loops of one tile."""
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

    def _combine(self, loops, lengths, block: int, term, how: _Combination) -> _Array:
        domain = hl.RDom([(0, length) for length in _innermost_first(lengths)])
        indices = [domain[place] for place in range(len(lengths))]
        function, place = hl.Func(), _innermost_first(loops)
        function[place] = how.initial
        function[place] = how.pair(function[place], term(*_innermost_first(indices)))
        self._vectorise(function, loops[-1])
        self._order(function.update(), loops, indices, block)
        self._kept.append(function)
        return _Array(function)

    def _order(self, update: hl.Stage, loops, indices, block: int) -> None:
        """Inside the reduction lies what fits registers, outside the rest of the tile."""
        *others, row, last = loops
        inside = [self._vectorise(update, last), self._unroll(update, row)]
        outside = [last, row, *_innermost_first(others)]
        if block:
            blocks = hl.RVar("blocks")
            update.split(indices[0], blocks, indices[0], block)
            outside.append(blocks)
        update.reorder(*inside, *indices, *outside)

    def _vectorise(self, stage: hl.Func | hl.Stage, loop: hl.Var) -> hl.Var:
        """Vectors of a length that divides the tile: no lane is idle, none repeats work."""
        lanes = hl.Var("lanes")
        stage.split(loop, loop, lanes, gcd(self._lengths[loop.name()], _MOST_LANES))
        stage.vectorize(lanes)
        return lanes

    def _unroll(self, stage: hl.Stage, loop: hl.Var) -> hl.Var:
        rows = hl.Var("rows")
        stage.split(loop, loop, rows, gcd(self._lengths[loop.name()], _MOST_ROWS))
        stage.unroll(rows)
        return rows


def _innermost_first(values: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(reversed(values))


def _sigmoid(x: hl.Expr) -> hl.Expr:
    return 1.0 / (1.0 + hl.exp(-x))


def _tanh(x: hl.Expr) -> hl.Expr:
    # Halide's own calls the C library for every element; its exponential is vectorised.
    return 2.0 * _sigmoid(2.0 * x) - 1.0


def _gelu(x: hl.Expr) -> hl.Expr:
    # JAX's approximation: 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
    cubic = x + hl.f32(0.044715) * x * x * x
    return x * _sigmoid(hl.f32(2 * sqrt(2 / pi)) * cubic)


def _matmul(nest: _LoopNest, x: _Array, y: _Array) -> hl.Expr:
    i, j = nest.loops
    return nest.total((i, j), lambda k: x[i, k] * y[k, j])


def _matmul_bias_gelu(nest: _LoopNest, x: _Array, y: _Array, bias: _Array) -> hl.Expr:
    return _gelu(_matmul(nest, x, y) + bias[nest.loops[1]])


def _pairwise_distance(nest: _LoopNest, x: _Array, y: _Array) -> hl.Expr:
    i, j = nest.loops

    def term(k):
        difference = x[i, k] - y[j, k]
        return difference * difference

    return nest.along_row((i, j), term, _SUM)


def _elementwise_reduce(nest: _LoopNest, x: _Array, y: _Array) -> hl.Expr:
    i, j = nest.loops
    return nest.along_row((i, j), lambda k: _tanh(x[i, j, k]) * y[i, j, k], _SUM)


def _column_reduce(nest: _LoopNest, x: _Array) -> hl.Expr:
    i, j = nest.loops
    return nest.total((i, j), lambda k: hl.abs(x[k, i, j]))


def _softmax(nest: _LoopNest, x: _Array) -> hl.Expr:
    i, j, k = nest.loops
    rows = (i, j)
    largest = nest.keep(rows, nest.along_row(rows, lambda r: x[i, j, r], _LARGEST))
    exponential = nest.keep(nest.loops, hl.exp(x[i, j, k] - largest[rows]))
    total = nest.keep(rows, nest.along_row(rows, lambda r: exponential[i, j, r], _SUM))
    return exponential[i, j, k] / total[rows]


def _transpose(nest: _LoopNest, x: _Array) -> hl.Expr:
    i, j, k = nest.loops
    return x[k, j, i] + 1.0


def _outer_product(nest: _LoopNest, x: _Array, y: _Array) -> hl.Expr:
    i, j = nest.loops
    return hl.exp(x[i] * y[j])


def _elementwise_chain(nest: _LoopNest, x: _Array, y: _Array, bias: _Array) -> hl.Expr:
    i, j = nest.loops
    return _gelu(x[i, j] + bias[j]) * _sigmoid(y[i, j])


def _stencil(nest: _LoopNest, x: _Array) -> hl.Expr:
    i, j = nest.loops
    # Rows are summed once per tile, two more than the tile has: small tiles repeat work.
    row = nest.keep((i, j), x[i, j] + x[i, j + 1] + x[i, j + 2])
    return _tanh(row[i, j] + row[i + 1, j] + row[i + 2, j])


def _convolution(nest: _LoopNest, x: _Array, w: _Array) -> hl.Expr:
    b, i, j, c = nest.loops

    def term(di, dj, channel):
        return x[b, i + di, j + dj, channel] * w[di, dj, channel, c]

    return nest.total(nest.loops, term)


def _depthwise_convolution(nest: _LoopNest, x: _Array, w: _Array) -> hl.Expr:
    b, i, j, c = nest.loops
    terms = [x[b, i + di, j + dj, c] * w[di, dj, c] for di in range(3) for dj in range(3)]
    return reduce(operator.add, terms)


_FAMILIES: dict[str, Callable[..., hl.Expr]] = {
    "matmul": _matmul,
    "matmul_bias_gelu": _matmul_bias_gelu,
    "pairwise_distance": _pairwise_distance,
    "elementwise_reduce": _elementwise_reduce,
    "column_reduce": _column_reduce,
    "softmax": _softmax,
    "transpose": _transpose,
    "outer_product": _outer_product,
    "elementwise_chain": _elementwise_chain,
    "stencil": _stencil,
    "convolution": _convolution,
    "depthwise_convolution": _depthwise_convolution,
}
