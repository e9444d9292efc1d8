"""Small programs as StableHLO, and their dispatches."""

import re
from functools import cache

import jax
import jax.numpy as jnp
from jax import lax

from hlorank_tune.iree.compiler import STABLEHLO_FLAGS
from hlorank_tune.iree.dispatch import Dispatch, find_dispatches


def shape(*extents, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(extents, dtype)


def stablehlo(function, *shapes) -> str:
    return jax.jit(function).lower(*shapes).as_text()


def dispatches(function, *shapes) -> list[Dispatch]:
    return find_dispatches(stablehlo(function, *shapes), STABLEHLO_FLAGS)


def tile_of(config: str) -> str:
    """Returns a ``lowering_config`` without the level for the cache, which no tile has."""
    return re.sub(r"cache_parallel = \[[^\]]*\], ", "", config)


def _mixed(image, kernel, weights, table):
    labels = ("NHWC", "HWIO", "NHWC")
    image = lax.conv_general_dilated(image, kernel, (1, 1), "VALID", dimension_numbers=labels)
    scores = jax.nn.softmax(image.reshape(72, 16) @ weights)
    return scores, table.T, jnp.tanh(table) * 2


MIXED = (shape(2, 8, 8, 4), shape(3, 3, 4, 16), shape(16, 24), shape(32, 48))


@cache
def mixed() -> str:
    """A convolution, a product, a softmax, a transpose and an elementwise dispatch."""
    return stablehlo(_mixed, *MIXED)


@cache
def mixed_dispatches() -> tuple[Dispatch, ...]:
    return tuple(find_dispatches(mixed(), STABLEHLO_FLAGS))


@cache
def product() -> Dispatch:
    """The dispatch of a product of 24 x 32 and 32 x 48."""
    (found,) = dispatches(lambda a, b: a @ b, shape(24, 32), shape(32, 48))
    return found
