"""Kernels drawn at random, which IREE compiles into one tunable dispatch or a few.

The structure is drawn, not a name from a list: dimensions, layouts, window parameters,
reduced axes, elementwise trees, and the operations before and after. The family of a
kernel names the class of the structure that was drawn; whole families are held out.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from hlorank_training.measuring.draw import (
    Draw,
    binary,
    broadcast_operand,
    elementwise,
    normalized,
    reduced,
    unary,
)
from hlorank_training.measuring.random_windows import window

NARROW = (jnp.bfloat16, jnp.float16, jnp.int8)


def contraction(draw: Draw):
    """Draws a contraction with the operations before and after it; returns family and result."""
    groups = {
        "b": "bc"[: draw.weighted({0: 65, 1: 28, 2: 7})],
        "m": "mi"[: draw.weighted({0: 10, 1: 72, 2: 18})],
        "n": "nj"[: draw.weighted({1: 84, 2: 16})],
        "k": "kl"[: draw.weighted({1: 84, 2: 16})],
    }
    sizes = {letter: draw.size(draw.volume(2, 16)) for letter in groups["b"]}
    letters = groups["m"] + groups["n"] + groups["k"]
    limits = (5e5, 5e7) if groups["m"] else (5e4, 4e6)
    volume = max(draw.volume(*limits) / max(1, prod(sizes.values())), 4096)
    extents = draw.shape(volume, len(letters), 4096)
    sizes |= dict(zip(letters, draw.shuffled(extents), strict=True))
    terms = [_term(draw, groups, kinds) for kinds in ("bmk", "bkn", "bmn")]
    shapes = [[sizes[letter] for letter in term] for term in terms]
    formula = f"{terms[0]},{terms[1]}->{terms[2]}"
    if draw.chance(0.07):
        element = draw.one_of(NARROW)
        wide = jnp.int32 if element == jnp.int8 else jnp.float32
        left, right = (draw.operand(shape, element) for shape in shapes[:2])
        result = jnp.einsum(formula, left, right, preferred_element_type=wide)
        result = result.astype(jnp.float32) * 0.01 if draw.chance(0.5) else result
        return "contraction_narrow", result
    operands = []
    for shape in shapes[:2]:
        operand = draw.operand(shape)
        is_computed = draw.chance(0.1)
        operands.append(elementwise(draw, operand, draw.one_of((1, 2))) if is_computed else operand)
    after, result = _after(draw, jnp.einsum(formula, *operands))
    return _contraction_family(groups, terms, after), result


def _term(draw: Draw, groups: dict[str, str], kinds: str) -> str:
    """Returns the dimensions of one term: groups in order, groups shuffled, or all shuffled."""
    how = draw.weighted({"plain": 60, "groups": 28, "letters": 12})
    if how == "groups":
        kinds = "".join(draw.shuffled(kinds))
    letters = "".join(groups[kind] for kind in kinds)
    return "".join(draw.shuffled(letters)) if how == "letters" else letters


def _after(draw: Draw, x):
    """Returns the kind of the operations after a product, and their result."""
    kind = draw.weighted({"": 45, "fused": 33, "reduced": 10, "softmax": 6, "normalized": 6})
    axis = draw.weighted({x.ndim - 1: 3, draw.one_of(range(x.ndim)): 1})
    if kind == "fused":
        x = elementwise(draw, x, draw.one_of((1, 2, 3)))
    if kind == "reduced":
        x = reduced(draw, x, (axis,))
    if kind == "softmax":
        x = jax.nn.softmax(x * 0.125, axis)
    if kind == "normalized":
        x = normalized(draw, x, (axis,))
    return kind, x


def _contraction_family(groups: dict[str, str], terms: list[str], after: str) -> str:
    if not groups["m"]:
        return "matvec"
    if after in ("softmax", "normalized"):
        return "contraction_then_normalized"
    if after == "reduced":
        return "contraction_then_reduced"
    if any(len(groups[kind]) > 1 for kind in "mnk"):
        return "contraction_multi"
    if groups["b"]:
        return "matmul_batched"
    if terms != ["mk", "kn", "mn"]:
        return "matmul_transposed"
    return "matmul_fused" if after else "matmul"


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


def reduction(draw: Draw):
    """Draws a reduction of an array of random rank, often after elementwise operations; returns
    family and result."""
    kind = draw.weighted({"reduction": 60, "softmax": 20, "normalization": 20})
    shape = draw.shape(draw.volume(3e4, 3e6), draw.weighted({1: 5, 2: 40, 3: 35, 4: 20}))
    x = draw.operand(shape)
    x = elementwise(draw, x, draw.one_of((1, 2))) if draw.chance(0.4) else x
    count = min(x.ndim, draw.weighted({1: 70, 2: 25, 3: 5}))
    minor = draw.chance(0.25)
    axes = tuple(range(x.ndim - count, x.ndim) if minor else draw.some_of(range(x.ndim), count))
    if kind == "softmax":
        function = draw.weighted({jax.nn.softmax: 3, jax.nn.log_softmax: 1})
        return kind, function(x, axes[0] if draw.chance(0.8) else axes)
    if kind == "normalization":
        return kind, normalized(draw, x, axes)
    result = reduced(draw, x, axes)
    result = elementwise(draw, result, 1) if result.ndim and draw.chance(0.3) else result
    place = "major" if axes == tuple(range(count)) else "mixed"
    place = "minor" if axes == tuple(range(x.ndim - count, x.ndim)) else place
    return f"reduction_{place}", result


COUNT = 2400

SHARES = {contraction: 40, window: 25, reduction: 20, elementwise_or_transpose: 15}
"""The main operations and how often each is drawn, in percent."""

ORDER = 20
"""Kernels after which the main operations have occurred as often as their shares say."""


@dataclass(frozen=True)
class RandomKernel:
    """One kernel: a JAX function and the shapes and types of its arguments."""

    name: str
    family: str
    function: Callable[..., Any]
    arguments: tuple[jax.ShapeDtypeStruct, ...]


def random_kernels(count: int = COUNT) -> Iterator[RandomKernel]:
    """Yields kernels in a fixed order; a prefix has the balance of the whole."""
    return (random_kernel(index) for index in range(count))


def random_kernel(index: int) -> RandomKernel:
    """Returns one kernel, which depends on the index alone."""
    # Operations alternate.
    period = [operation for operation, share in SHARES.items() for _ in range(share * ORDER // 100)]
    operation = period[index * 7 % ORDER]
    families: list[str] = []
    draw = Draw(f"kernel {index}")

    def traced():
        family, result = operation(draw)
        families.append(family)
        return result

    jax.eval_shape(traced)
    arguments = tuple(jax.ShapeDtypeStruct(shape, element) for shape, element in draw.operands)

    def function(*values):
        return operation(Draw(f"kernel {index}", values))[1]

    return RandomKernel(f"{families[0]}_{index:04}", families[0], function, arguments)
