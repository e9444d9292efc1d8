"""Random sizes and operands for the kernels that are drawn at random."""

import math
import random
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

ROUND = (2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 160, 192, 256, 320, 384, 512, 640, 768, 1024)
ROUND_LARGE = (1280, 1536, 2048, 2560, 3072, 4096, 8192, 16384, 32768, 65536, 262144, 1048576)
ODD = (3, 5, 7, 10, 13, 14, 20, 21, 28, 30, 40, 49, 50, 56, 77, 80, 100, 112, 120, 144, 150, 197)
ODD_LARGE = (200, 224, 300, 400, 500, 577, 600, 900, 1000, 1500, 2000, 3000, 5000, 10000, 50000)
SIZES = (ROUND + ROUND_LARGE, ODD + ODD_LARGE)


class Draw:
    """Draws the structure of one kernel while JAX traces it.

    The same seed gives the same structure on every trace. Without values the operands
    are zeros, and their shapes and types are recorded.
    """

    def __init__(self, seed: str, values: Sequence[Any] | None = None):
        self.operands: list[tuple[tuple[int, ...], Any]] = []
        self._random = random.Random(seed)
        self._values = None if values is None else iter(values)

    def operand(self, shape: Sequence[int], element: Any = jnp.float32):
        """Returns the next argument of the kernel, of ``shape`` and type ``element``."""
        self.operands.append((tuple(shape), element))
        return jnp.zeros(shape, element) if self._values is None else next(self._values)

    def chance(self, probability: float) -> bool:
        """Returns whether an event of this probability happens."""
        return self._random.random() < probability

    def one_of(self, choices: Sequence[Any]) -> Any:
        """Returns one of the choices, all equally likely."""
        return choices[self._random.randrange(len(choices))]

    def weighted(self, choices: dict[Any, float]) -> Any:
        """Returns one of the keys, as likely as its value says."""
        return self._random.choices(list(choices), list(choices.values()))[0]

    def shuffled(self, items: Sequence[Any]) -> list[Any]:
        """Returns the items in random order."""
        return sorted(items, key=lambda _: self._random.random())

    def some_of(self, items: Sequence[Any], count: int) -> list[Any]:
        """Returns ``count`` of the items in their order."""
        chosen = set(self.shuffled(range(len(items)))[:count])
        return [item for index, item in enumerate(items) if index in chosen]

    def volume(self, low: float, high: float) -> float:
        """Returns a number whose logarithm is uniform."""
        return math.exp(self._random.uniform(math.log(low), math.log(high)))

    def size(self, target: float) -> int:
        """Returns an extent near ``target``, round or odd as in real networks."""
        sizes = SIZES[self.chance(0.4)]
        near = [size for size in sizes if target / 1.4 <= size <= target * 1.4]
        return self.one_of(near or [min(sizes, key=lambda size: abs(math.log(size / target)))])

    def shape(self, volume: float, rank: int, largest: float = 1e6) -> tuple[int, ...]:
        """Returns extents whose product is near ``volume``."""
        weights = [self._random.uniform(0.3, 1) for _ in range(rank)]
        extents = []
        for index, weight in enumerate(weights):
            target = volume ** (weight / sum(weights[index:]))
            extents.append(self.size(min(max(target, 2), largest)))
            volume = max(volume / extents[-1], 2)
        return tuple(extents)


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


REDUCTIONS = {
    "sum": lambda x, axes, keep: x.sum(axes, keepdims=keep),
    "mean": lambda x, axes, keep: x.mean(axes, keepdims=keep),
    "max": lambda x, axes, keep: x.max(axes, keepdims=keep),
    "min": lambda x, axes, keep: x.min(axes, keepdims=keep),
    "product": lambda x, axes, keep: jnp.prod(1 + 0.01 * x, axes, keepdims=keep),
    "norm": lambda x, axes, keep: jnp.sqrt((x * x).sum(axes, keepdims=keep)),
    "absolute": lambda x, axes, keep: jnp.abs(x).sum(axes, keepdims=keep),
    "logsumexp": lambda x, axes, keep: jax.nn.logsumexp(x, axes, keepdims=keep),
    "variance": lambda x, axes, keep: x.var(axes, keepdims=keep),
}
