"""Random elementwise trees, transposes and permuted copies."""

import jax.numpy as jnp
from jax import lax

from hlorank_training.measuring.draw import Draw
from hlorank_training.measuring.random_operations import (
    binary,
    broadcast_operand,
    elementwise,
    unary,
)


def elementwise_or_transpose(draw: Draw):
    """Draws a kernel without a reduction; returns family and result."""
    kind = draw.weighted({"tree": 55, "transpose": 35, "cast": 10})
    return {"tree": _tree, "transpose": _transpose, "cast": _cast}[kind](draw)


def _tree(draw: Draw):
    shape = draw.shape(draw.volume(2e4, 2e6), draw.one_of((1, 2, 3, 4)))
    broadcasts = draw.chance(0.6)
    depth = draw.one_of((1, 2, 3, 4, 5, 6))
    x = _node(draw, shape, depth, broadcasts)
    mixed = any(operand != shape for operand, _ in draw.operands)
    return "elementwise_broadcast" if mixed else "elementwise", x + draw.operand(shape)


def _node(draw: Draw, shape: tuple[int, ...], depth: int, broadcasts: bool):
    if depth == 0:
        return broadcast_operand(draw, shape) if broadcasts else draw.operand(shape)
    if draw.chance(0.5):
        return unary(draw, _node(draw, shape, depth - 1, broadcasts))
    left = _node(draw, shape, depth - 1, broadcasts)
    return binary(draw, left, _node(draw, shape, draw.one_of((0, depth // 3)), broadcasts))


def _transpose(draw: Draw):
    rank = draw.weighted({2: 35, 3: 35, 4: 30})
    x = draw.operand(draw.shape(draw.volume(2e4, 2e6), rank, 4096))
    orders = [draw.shuffled(range(rank)) for _ in range(4)]
    order = next((o for o in orders if o != sorted(o)), list(reversed(range(rank))))
    x = x.transpose(order)
    if draw.chance(0.4):
        x = elementwise(draw, x, draw.one_of((1, 2)))
        return "transpose_fused", x
    if draw.chance(0.25):
        return "transpose_fused", lax.rev(x, [draw.one_of(range(rank))]) + 1
    return "transpose", x


def _cast(draw: Draw):
    """A conversion between element types, as around quantized layers."""
    shape = draw.shape(draw.volume(4e4, 3e6), draw.one_of((1, 2, 3)))
    narrow = draw.one_of((jnp.int8, jnp.int32, jnp.bfloat16, jnp.float16))
    if draw.chance(0.5):
        x = draw.operand(shape, narrow).astype(jnp.float32)
        return "cast", elementwise(draw, x, draw.one_of((1, 2)))
    x = elementwise(draw, draw.operand(shape), draw.one_of((1, 2)))
    return "cast", (jnp.clip(x * 32, -127, 127)).astype(narrow)
