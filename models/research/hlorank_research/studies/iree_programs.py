"""The programs of the study: networks that no training data was collected from.

Each is a plain JAX function ``body(p, *inputs)`` whose parameters are made from a seed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from hlorank_training.measuring.layers import Scope


@dataclass(frozen=True)
class Program:
    """One program: its body and the shapes of its inputs, all f32."""

    name: str
    body: Callable[..., Any]
    inputs: tuple[tuple[int, ...], ...]

    def function(self, *arguments):
        """Runs the program on its inputs, followed by its parameters."""
        count = len(self.inputs)
        return self.body(Scope(list(arguments[count:])), *arguments[:count])

    @cached_property
    def arguments(self) -> list[np.ndarray]:
        """Inputs and parameters, the same in every process."""
        random = np.random.default_rng(0)
        return [_fill(random, shape) for shape in (*self.inputs, *self._parameters())]

    def _parameters(self) -> list[tuple[int, ...]]:
        scope = Scope()
        inputs = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in self.inputs]
        jax.eval_shape(lambda *values: self.body(scope, *values), *inputs)
        return scope.shapes


def _fill(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    fan = np.prod(shape[:-1]) if len(shape) > 1 else 1
    return (random.standard_normal(shape) / np.sqrt(fan)).astype(np.float32)


def programs() -> list[Program]:
    """Returns the programs in the order of the study."""
    return [
        Program("residual_convolutions", residual_convolutions, ((1, 88, 88, 24),)),
        Program("mobile_convolutions", mobile_convolutions, ((1, 76, 76, 20),)),
        Program("encoder_layer", encoder_layer, ((1, 180, 240),)),
        Program("decoder_step", decoder_step, ((12, 480), (12, 8, 300, 60), (12, 8, 300, 60))),
        Program("mixer_block", mixer_block, ((2, 144, 224),)),
        Program("small_u_net", small_u_net, ((1, 108, 108, 10),)),
        Program("lstm_step", lstm_step, ((40, 544), (40, 544), (40, 544))),
        Program("lstm_unrolled", lstm_unrolled, ((16, 20, 272),)),
        Program("multilayer_perceptron", multilayer_perceptron, ((72, 432),)),
        Program("vision_patches", vision_patches, ((1, 105, 105, 3),)),
        Program("dense_graph_layer", dense_graph_layer, ((280, 104), (280, 280))),
        Program("shifted_windows", shifted_windows, ((1, 28, 28, 72),)),
    ]


def _linear(p, x, width):
    return x @ p(x.shape[-1], width) + p(width)


def _normalize(p, x):
    centred = x - x.mean(-1, keepdims=True)
    scale = lax.rsqrt(jnp.square(centred).mean(-1, keepdims=True) + 1e-5)
    return centred * scale * p(x.shape[-1]) + p(x.shape[-1])


def _convolve(p, x, width, size=3, stride=1, groups=1):
    weights = p(size, size, x.shape[-1] // groups, width)
    return lax.conv_general_dilated(
        x,
        weights,
        (stride, stride),
        "SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=groups,
    ) + p(width)


def _heads(x, heads):
    return x.reshape(*x.shape[:-1], heads, -1).swapaxes(-2, -3)


def _attend(queries, keys, values):
    scores = queries @ keys.swapaxes(-1, -2) / np.sqrt(queries.shape[-1])
    return jax.nn.softmax(scores, -1) @ values


def _self_attention(p, x, heads):
    parts = [_heads(_linear(p, x, x.shape[-1]), heads) for _ in range(3)]
    return _linear(p, _attend(*parts).swapaxes(-2, -3).reshape(x.shape), x.shape[-1])


def _feed_forward(p, x, factor):
    return _linear(p, jax.nn.gelu(_linear(p, x, factor * x.shape[-1])), x.shape[-1])


def residual_convolutions(p, x):
    """Two residual blocks, the second of which halves the image."""
    for width, stride in ((24, 1), (56, 2)):
        shortcut = _convolve(p, x, width, 1, stride)
        y = jax.nn.relu(_convolve(p, x, width, 3, stride))
        x = jax.nn.relu(_convolve(p, y, width) + shortcut)
    return _linear(p, x.mean((1, 2)), 40)


def mobile_convolutions(p, x):
    """Inverted bottlenecks with depthwise windows of 3 and 5."""
    for size, width in ((3, 20), (5, 36)):
        y = jax.nn.silu(_convolve(p, x, 4 * x.shape[-1], 1))
        y = jax.nn.silu(_convolve(p, y, y.shape[-1], size, groups=y.shape[-1]))
        y = _convolve(p, y, width, 1)
        x = x + y if x.shape == y.shape else y
    return x


def encoder_layer(p, x):
    """One layer of a transformer encoder with 5 heads."""
    x = x + _self_attention(p, _normalize(p, x), 5)
    return x + _feed_forward(p, _normalize(p, x), 3)


def decoder_step(p, x, keys, values):
    """One token per sequence, which attends to the keys and values of earlier tokens."""
    heads = keys.shape[1]
    y = _normalize(p, x)[:, None]
    query, key, value = (_heads(_linear(p, y, x.shape[-1]), heads) for _ in range(3))
    keys = jnp.concatenate([keys, key], 2)
    values = jnp.concatenate([values, value], 2)
    x = x + _linear(p, _attend(query, keys, values).reshape(x.shape), x.shape[-1])
    return x + _feed_forward(p, _normalize(p, x), 4)


def mixer_block(p, x):
    """Mixes tokens, then channels."""
    x = x + _feed_forward(p, _normalize(p, x).swapaxes(1, 2), 2).swapaxes(1, 2)
    return x + _feed_forward(p, _normalize(p, x), 3)


def small_u_net(p, x):
    """One level down by a strided convolution and up again, with a skip connection."""
    skip = jax.nn.relu(_convolve(p, x, 20))
    deep = jax.nn.relu(_convolve(p, skip, 40, 3, 2))
    deep = jax.nn.relu(_convolve(p, deep, 20))
    raised = jnp.repeat(jnp.repeat(deep, 2, 1), 2, 2)
    return _convolve(p, jnp.concatenate([raised, skip], -1), 10)


def _lstm_cell(gates, cell):
    write, keep, fresh, read = jnp.split(gates, 4, -1)
    cell = jax.nn.sigmoid(keep) * cell + jax.nn.sigmoid(write) * jnp.tanh(fresh)
    return jax.nn.sigmoid(read) * jnp.tanh(cell), cell


def lstm_step(p, x, state, cell):
    """One step of an LSTM."""
    width = state.shape[-1]
    return _lstm_cell(_linear(p, x, 4 * width) + state @ p(width, 4 * width), cell)


def lstm_unrolled(p, x):
    """All steps of an LSTM over time-major input."""
    width = x.shape[-1]
    inputs = _linear(p, x, 4 * width)
    weights = p(width, 4 * width)
    state = cell = jnp.zeros(x.shape[1:], x.dtype)
    for step in range(x.shape[0]):
        state, cell = _lstm_cell(inputs[step] + state @ weights, cell)
    return state


def multilayer_perceptron(p, x):
    """Three wide layers."""
    for width in (900, 700, 300):
        x = jax.nn.relu(_linear(p, x, width))
    return jax.nn.log_softmax(_linear(p, x, 50))


def vision_patches(p, x):
    """Patches of 7 x 7 pixels, embedded, and one layer of a transformer."""
    weights = p(7, 7, 3, 156)
    x = lax.conv_general_dilated(
        x, weights, (7, 7), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    x = x.reshape(x.shape[0], -1, x.shape[-1])
    x = x + p(*x.shape[1:])
    x = x + _self_attention(p, _normalize(p, x), 4)
    return x + _feed_forward(p, _normalize(p, x), 4)


def dense_graph_layer(p, x, adjacency):
    """Two layers that average the features of neighbours by a normalized adjacency."""
    weights = jax.nn.softmax(adjacency, -1)
    for width in (136, 88):
        x = jax.nn.elu(weights @ _linear(p, x, width) + _linear(p, x, width))
    return _normalize(p, x)


def shifted_windows(p, x):
    """Attention in windows of 7 x 7 positions, shifted by 3."""
    batch, rows, columns, width = x.shape
    y = jnp.roll(_normalize(p, x), (-3, -3), (1, 2))
    y = y.reshape(batch, rows // 7, 7, columns // 7, 7, width)
    y = y.transpose(0, 1, 3, 2, 4, 5).reshape(-1, 49, width)
    y = _self_attention(p, y, 3)
    y = y.reshape(batch, rows // 7, columns // 7, 7, 7, width)
    y = y.transpose(0, 1, 3, 2, 4, 5).reshape(x.shape)
    x = x + jnp.roll(y, (3, 3), (1, 2))
    return x + _feed_forward(p, _normalize(p, x), 3)
