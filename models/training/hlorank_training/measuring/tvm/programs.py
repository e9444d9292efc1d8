"""Relax programs of operators of many kinds, in sizes that are drawn at random."""

from collections.abc import Callable
from functools import partial

import numpy as np
import tvm
from tvm import relax
from tvm.relax import op

_OPERATORS_OF_A_PROGRAM = 6


class Drawn:
    """The parameters of a Relax program that is being built, whose sizes are drawn at random."""

    def __init__(self, seed: int):
        self.every: list[relax.Var] = []
        self._random = np.random.default_rng(seed)

    def new(self, *shape: int) -> relax.Var:
        """Adds a tensor of f32."""
        parameter = relax.Var(f"p{len(self.every)}", relax.TensorType(shape, "float32"))
        self.every.append(parameter)
        return parameter

    def one_of(self, *values: int) -> int:
        """Returns one of some numbers."""
        return int(self._random.choice(values))

    def operators(self) -> list[Callable[["Drawn"], relax.Expr]]:
        """Returns different operators."""
        return list(self._random.permutation(OPERATORS)[:_OPERATORS_OF_A_PROGRAM])

    def width(self) -> int:
        """Returns a number of features."""
        return self.one_of(48, 64, 96, 128, 160, 192, 256, 320, 384)

    def rows(self) -> int:
        """Returns a number of tokens, or of other rows."""
        return self.one_of(16, 32, 49, 64, 96, 128, 196)

    def image(self, *channels: int) -> relax.Var:
        """Adds a picture whose sides are drawn."""
        side = self.one_of(7, 14, 16, 20, 28, 32)
        return self.new(1, *channels, side, side)

    def channels(self) -> int:
        """Returns a number of channels."""
        return self.one_of(8, 16, 24, 32, 48, 64)

    def heads(self) -> tuple[int, int, int]:
        """Returns the number of heads of an attention, of tokens, and the width of a head."""
        return self.one_of(2, 3, 4, 6, 8), self.rows(), self.one_of(32, 48, 64)


def _product(drawn: Drawn) -> relax.Expr:
    rows, inner, columns = drawn.rows(), drawn.width(), drawn.width()
    return op.matmul(drawn.new(rows, inner), drawn.new(inner, columns))


def _perceptron(drawn: Drawn) -> relax.Expr:
    width = drawn.width()
    rows, inner = drawn.rows(), drawn.width()
    product = op.matmul(drawn.new(rows, inner), drawn.new(inner, width))
    return op.nn.gelu(op.add(product, drawn.new(width)))


def _scores_of_attention(drawn: Drawn) -> relax.Expr:
    shape = drawn.heads()
    queries, keys = drawn.new(*shape), drawn.new(*shape)
    return op.matmul(queries, op.permute_dims(keys, (0, 2, 1)))


def _attended(drawn: Drawn) -> relax.Expr:
    heads, rows, width = drawn.heads()
    return op.matmul(drawn.new(heads, rows, rows), drawn.new(heads, rows, width))


def _softmax(drawn: Drawn) -> relax.Expr:
    rows = drawn.rows()
    return op.nn.softmax(drawn.new(drawn.one_of(1, 2, 4, 8), rows, rows), axis=-1)


def _layer_norm(drawn: Drawn) -> relax.Expr:
    width = drawn.width()
    text = drawn.new(drawn.rows(), width)
    return op.nn.layer_norm(text, drawn.new(width), drawn.new(width), axes=[-1])


def _rms_norm(drawn: Drawn) -> relax.Expr:
    width = drawn.width()
    return op.nn.rms_norm(drawn.new(drawn.rows(), width), drawn.new(width), axes=[-1])


def _mean(drawn: Drawn) -> relax.Expr:
    return op.mean(drawn.new(drawn.rows(), drawn.width()), axis=[drawn.one_of(0, 1)])


def _convolution(drawn: Drawn) -> relax.Expr:
    channels, kernels, size = drawn.channels(), drawn.channels(), drawn.one_of(1, 3, 3, 5)
    picture, filters = drawn.image(channels), drawn.new(kernels, channels, size, size)
    stride, padding = drawn.one_of(1, 2), size // 2
    convolved = op.nn.conv2d(picture, filters, strides=stride, padding=padding)
    return op.nn.relu(op.add(convolved, drawn.new(1, kernels, 1, 1)))


def _of_channels_last(drawn: Drawn) -> relax.Expr:
    channels, kernels, size = drawn.channels(), drawn.channels(), drawn.one_of(1, 3)
    side, stride = drawn.one_of(7, 14, 28), drawn.one_of(1, 2)
    picture, filters = drawn.new(1, side, side, channels), drawn.new(size, size, channels, kernels)
    layouts = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
    return op.nn.conv2d(picture, filters, strides=stride, padding=size // 2, **layouts)


def _depthwise(drawn: Drawn) -> relax.Expr:
    channels, size = drawn.channels(), drawn.one_of(3, 5)
    picture, filters = drawn.image(channels), drawn.new(channels, 1, size, size)
    stride, padding = drawn.one_of(1, 2), size // 2
    return op.nn.conv2d(picture, filters, strides=stride, padding=padding, groups=channels)


def _transposed(drawn: Drawn) -> relax.Expr:
    channels, kernels, size = drawn.channels(), drawn.channels(), drawn.one_of(2, 4)
    side = drawn.one_of(7, 8, 14)
    picture, filters = drawn.new(1, channels, side, side), drawn.new(channels, kernels, size, size)
    return op.nn.conv2d_transpose(picture, filters, strides=2, padding=size // 2 - 1)


def _of_a_sequence(drawn: Drawn) -> relax.Expr:
    channels, kernels, size = drawn.channels(), drawn.channels(), drawn.one_of(3, 5)
    sequence = drawn.new(1, channels, drawn.one_of(64, 128, 256))
    return op.nn.conv1d(sequence, drawn.new(kernels, channels, size), padding=size // 2)


def _pooled(pool: Callable[..., relax.Expr], drawn: Drawn) -> relax.Expr:
    size = drawn.one_of(2, 3)
    return pool(drawn.image(drawn.channels()), (size, size), strides=(2, 2))


OPERATORS = (
    _product,
    _perceptron,
    _scores_of_attention,
    _attended,
    _softmax,
    _layer_norm,
    _rms_norm,
    _mean,
    _convolution,
    _of_channels_last,
    _depthwise,
    _transposed,
    _of_a_sequence,
    partial(_pooled, op.nn.max_pool2d),
    partial(_pooled, op.nn.avg_pool2d),
)


def random_program(seed: int) -> tvm.IRModule:
    """Returns a program of some operators that do not depend on each other."""
    drawn = Drawn(seed)
    results = [operator(drawn) for operator in drawn.operators()]
    builder = relax.BlockBuilder()
    with builder.function("main", drawn.every):
        with builder.dataflow():
            outputs = builder.emit_output(relax.Tuple([builder.emit(each) for each in results]))
        builder.emit_func_output(outputs)
    return builder.finalize()
