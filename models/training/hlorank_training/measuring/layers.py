"""The layers of the zoo's networks.

``order`` names the dimensions of an image, such as NHWC or NCHW; ``p`` returns parameters.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax


class Scope:
    """Returns parameters in order: without values it records their shapes."""

    def __init__(self, values: list[Any] | None = None):
        self.shapes: list[tuple[int, ...]] = []
        self._values = None if values is None else iter(values)

    def __call__(self, *shape: int):
        """Returns the next parameter, f32 of ``shape``."""
        self.shapes.append(shape)
        return jnp.zeros(shape, jnp.float32) if self._values is None else next(self._values)


def _along_channels(vector, order: str):
    return vector.reshape([-1 if letter == "C" else 1 for letter in order])


def conv(p, x, width, size=3, stride=1, groups=1, order="NHWC", kernel="HWIO"):
    channels = x.shape[order.index("C")]
    sides = {"H": size, "W": size, "I": channels // groups, "O": width}
    weights = p(*(sides[letter] for letter in kernel))
    return lax.conv_general_dilated(
        x,
        weights,
        (stride, stride),
        "SAME",
        dimension_numbers=(order, kernel, order),
        feature_group_count=groups,
    )


def norm(p, x, order="NHWC"):
    width = x.shape[order.index("C")]
    return x * _along_channels(p(width), order) + _along_channels(p(width), order)


def conv_norm(p, x, width, size=3, stride=1, order="NHWC", kernel="HWIO"):
    return norm(p, conv(p, x, width, size, stride, order=order, kernel=kernel), order)


def pool(x, order="NHWC", size=2):
    window = tuple(size if letter in "HW" else 1 for letter in order)
    return lax.reduce_window(x, -jnp.inf, lax.max, window, window, "VALID")


def spatial_mean(x, order="NHWC"):
    return x.mean(tuple(axis for axis, letter in enumerate(order) if letter in "HW"))


def layer_norm(p, x):
    centred = x - x.mean(-1, keepdims=True)
    scaled = centred * lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    return scaled * p(x.shape[-1]) + p(x.shape[-1])


def dense(p, x, width, transposed=False):
    if transposed:
        return jnp.einsum("...i,oi->...o", x, p(width, x.shape[-1])) + p(width)
    return x @ p(x.shape[-1], width) + p(width)


def feed_forward(p, x, wider=2, transposed=False):
    hidden = jax.nn.gelu(dense(p, layer_norm(p, x), wider * x.shape[-1], transposed))
    return x + dense(p, hidden, x.shape[-1], transposed)


def in_heads(p, x, heads, transposed=False):
    """Maps [batch, length, width] linearly to [batch, length, heads, width of a head]."""
    return dense(p, x, x.shape[-1], transposed).reshape(*x.shape[:2], heads, -1)


def attention(p, x, heads, causal=False, transposed=False, heads_first=True):
    length = x.shape[1]
    split = [in_heads(p, x, heads, transposed) for _ in range(3)]
    if heads_first:
        q, k, v = (part.transpose(0, 2, 1, 3) for part in split)
        weights = jnp.einsum("bhtd,bhsd->bhts", q, k)
    else:
        q, k, v = split
        weights = jnp.einsum("bthd,bshd->bhts", q, k)
    if causal:
        weights = jnp.where(jnp.tril(jnp.ones((length, length), bool)), weights, -1e9)
    weights = jax.nn.softmax(weights, -1)
    mixed = jnp.einsum("bhts,bhsd->bthd" if heads_first else "bhts,bshd->bthd", weights, v)
    return dense(p, mixed.reshape(x.shape), x.shape[-1], transposed)
