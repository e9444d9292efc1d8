"""Operations that random kernels apply to an array, before or after their main operation."""

import jax
import jax.numpy as jnp
from jax import lax

from hlorank_training.measuring.draw import Draw

UNARY = {
    "relu": lambda x: jnp.maximum(x, 0),
    "relu6": lambda x: jnp.clip(x, 0, 6),
    "gelu": jax.nn.gelu,
    "silu": jax.nn.silu,
    "sigmoid": jax.nn.sigmoid,
    "tanh": jnp.tanh,
    "exponential": lambda x: jnp.exp(-jnp.abs(x)),
    "logarithm": lambda x: jnp.log1p(jnp.abs(x)),
    "root": lambda x: jnp.sqrt(jnp.abs(x) + 1e-3),
    "square": lambda x: x * x,
    "scale": lambda x: x * 0.125,
    "negative": lambda x: 1 - x,
    "absolute": jnp.abs,
    "leaky": lambda x: jnp.where(x > 0, x, 0.01 * x),
}

BINARY = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "maximum": jnp.maximum,
    "divide": lambda x, y: x / (jnp.abs(y) + 1),
    "gate": lambda x, y: x * jax.nn.sigmoid(y),
    "select": lambda x, y: jnp.where(x > y, x, 0.5 * y),
}


def unary(draw: Draw, x):
    """Applies a random function to every element."""
    return UNARY[draw.one_of(list(UNARY))](x)


def binary(draw: Draw, x, y):
    """Combines the elements of two arrays by a random function."""
    return BINARY[draw.one_of(list(BINARY))](x, y)


def broadcast_operand(draw: Draw, shape: tuple[int, ...]):
    """Returns a new operand that extends over some of the dimensions of ``shape``."""
    kept = draw.some_of(range(len(shape)), draw.one_of(range(1, len(shape) + 1)))
    operand = draw.operand([shape[axis] for axis in kept])
    return lax.broadcast_in_dim(operand, shape, kept)


def elementwise(draw: Draw, x, steps: int):
    """Applies a chain of random unary and binary functions."""
    for _ in range(steps):
        if draw.chance(0.5):
            x = unary(draw, x)
        else:
            x = binary(draw, x, broadcast_operand(draw, x.shape))
    return x


def normalized(draw: Draw, x, axes: tuple[int, ...]):
    """Normalizes by mean and variance, or by the root of the mean square."""
    mean = x.mean(axes, keepdims=True) if draw.chance(0.6) else 0
    centred = x - mean
    y = centred * lax.rsqrt((centred**2).mean(axes, keepdims=True) + 1e-5)
    return elementwise(draw, y, draw.one_of((0, 1, 2)))


def reduced(draw: Draw, x, axes: tuple[int, ...]):
    """Reduces some axes by a random reduction."""
    keep = draw.chance(0.2)
    kind = draw.one_of(list(REDUCTIONS))
    return REDUCTIONS[kind](x, axes, keep)


def _norm(x, axes, keep):
    return jnp.sqrt((x * x).sum(axes, keepdims=keep))


def _largest_log(x, axes, keep):
    return jax.nn.logsumexp(x, axes, keepdims=keep)


REDUCTIONS = {
    "sum": lambda x, axes, keep: x.sum(axes, keepdims=keep),
    "mean": lambda x, axes, keep: x.mean(axes, keepdims=keep),
    "max": lambda x, axes, keep: x.max(axes, keepdims=keep),
    "min": lambda x, axes, keep: x.min(axes, keepdims=keep),
    "product": lambda x, axes, keep: jnp.prod(1 + 0.01 * x, axes, keepdims=keep),
    "norm": _norm,
    "absolute": lambda x, axes, keep: jnp.abs(x).sum(axes, keepdims=keep),
    "logsumexp": _largest_log,
    "variance": lambda x, axes, keep: x.var(axes, keepdims=keep),
}
