"""Kernels as Halide loop nests that run on one thread."""

import operator
from collections.abc import Callable, Sequence
from functools import reduce
from math import pi, sqrt
from typing import Any

import numpy as np
from hlorank_tune.measure.tuning_data import Tile

from hlorank_training.measuring.kernel import Kernel
from hlorank_training.measuring.loop_nest import LARGEST, SUM, Array, LoopNest, hl


def compile_halide(
    kernel: Kernel, tiles: Sequence[Tile], arguments: Sequence[Any]
) -> list[Callable[[], np.ndarray]]:
    """Compiles one program per tile; all read the same arrays, so only the tile differs."""
    inputs = [_buffer(argument) for argument in arguments]
    return [_compile(kernel, tile, inputs) for tile in tiles]


def runs_on_halide(kernel: Kernel) -> bool:
    """Returns whether the kernel's family has a loop nest in this module."""
    return kernel.family in _FAMILIES


def _buffer(argument: Any) -> hl.Buffer:
    # Halide rejects read-only arrays, and does not keep the array alive.
    array = np.array(argument, np.float32)
    return hl.Buffer(array).copy()


def _compile(kernel: Kernel, tile: Tile, inputs: Sequence[hl.Buffer]) -> Callable[[], np.ndarray]:
    nest = LoopNest(kernel, tile)
    value = _FAMILIES[kernel.family](nest, *map(Array, inputs))
    function = nest.output(value)
    function.compile_jit(hl.get_host_target())
    result = np.empty(kernel.output, np.float32)
    buffer = hl.Buffer(result)

    def run() -> np.ndarray:
        function.realize(buffer)
        return result

    return run


def _sigmoid(x: hl.Expr) -> hl.Expr:
    return 1.0 / (1.0 + hl.exp(-x))


def _tanh(x: hl.Expr) -> hl.Expr:
    # Halide's tanh calls the C library for every element; its exponential is vectorized.
    return 2.0 * _sigmoid(2.0 * x) - 1.0


def _gelu(x: hl.Expr) -> hl.Expr:
    # JAX's approximation: 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
    cubic = x + hl.f32(0.044715) * x * x * x
    return x * _sigmoid(hl.f32(2 * sqrt(2 / pi)) * cubic)


def _matmul(nest: LoopNest, x: Array, y: Array) -> hl.Expr:
    i, j = nest.loops
    return nest.total((i, j), lambda k: x[i, k] * y[k, j])


def _matmul_bias_gelu(nest: LoopNest, x: Array, y: Array, bias: Array) -> hl.Expr:
    return _gelu(_matmul(nest, x, y) + bias[nest.loops[1]])


def _pairwise_distance(nest: LoopNest, x: Array, y: Array) -> hl.Expr:
    i, j = nest.loops

    def term(k):
        difference = x[i, k] - y[j, k]
        return difference * difference

    return nest.along_row((i, j), term, SUM)


def _elementwise_reduce(nest: LoopNest, x: Array, y: Array) -> hl.Expr:
    i, j = nest.loops
    return nest.along_row((i, j), lambda k: _tanh(x[i, j, k]) * y[i, j, k], SUM)


def _column_reduce(nest: LoopNest, x: Array) -> hl.Expr:
    i, j = nest.loops
    return nest.total((i, j), lambda k: hl.abs(x[k, i, j]))


def _softmax(nest: LoopNest, x: Array) -> hl.Expr:
    i, j, k = nest.loops
    rows = (i, j)
    largest = nest.keep(rows, nest.along_row(rows, lambda r: x[i, j, r], LARGEST))
    exponential = nest.keep(nest.loops, hl.exp(x[i, j, k] - largest[rows]))
    total = nest.keep(rows, nest.along_row(rows, lambda r: exponential[i, j, r], SUM))
    return exponential[i, j, k] / total[rows]


def _transpose(nest: LoopNest, x: Array) -> hl.Expr:
    i, j, k = nest.loops
    return x[k, j, i] + 1.0


def _outer_product(nest: LoopNest, x: Array, y: Array) -> hl.Expr:
    i, j = nest.loops
    return hl.exp(x[i] * y[j])


def _elementwise_chain(nest: LoopNest, x: Array, y: Array, bias: Array) -> hl.Expr:
    i, j = nest.loops
    return _gelu(x[i, j] + bias[j]) * _sigmoid(y[i, j])


def _stencil(nest: LoopNest, x: Array) -> hl.Expr:
    i, j = nest.loops
    # A tile sums its rows and two more, so small tiles repeat work.
    row = nest.keep((i, j), x[i, j] + x[i, j + 1] + x[i, j + 2])
    return _tanh(row[i, j] + row[i + 1, j] + row[i + 2, j])


def _convolution(nest: LoopNest, x: Array, w: Array) -> hl.Expr:
    b, i, j, c = nest.loops

    def term(di, dj, channel):
        return x[b, i + di, j + dj, channel] * w[di, dj, channel, c]

    return nest.total(nest.loops, term)


def _depthwise_convolution(nest: LoopNest, x: Array, w: Array) -> hl.Expr:
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
