"""Random contractions: products of two operands over random dimensions in random orders."""

import jax
import jax.numpy as jnp

from hlorank_training.measuring.draw import Draw, elementwise, normalized, reduced

NARROW = (jnp.bfloat16, jnp.float16, jnp.int8)


def contraction(draw: Draw):
    """Draws a contraction with the operations before and after it; returns family and result."""
    groups = {
        "b": "bc"[: draw.weighted({0: 65, 1: 28, 2: 7})],
        "m": "mi"[: draw.weighted({0: 10, 1: 72, 2: 18})],
        "n": "nj"[: draw.weighted({1: 84, 2: 16})],
        "k": "kl"[: draw.weighted({1: 84, 2: 16})],
    }
    sizes = _sizes(draw, groups)
    terms = [_order(draw, groups, kinds) for kinds in ("bmk", "bkn", "bmn")]
    shapes = [[sizes[letter] for letter in term] for term in terms]
    formula = f"{terms[0]},{terms[1]}->{terms[2]}"
    if draw.chance(0.07):
        return "contraction_narrow", _narrow(draw, formula, shapes)
    left, right = (_operand(draw, shape) for shape in shapes[:2])
    after, result = _after(draw, jnp.einsum(formula, left, right))
    return _family(groups, terms, after), result


def _sizes(draw: Draw, groups: dict[str, str]) -> dict[str, int]:
    sizes = {letter: draw.size(draw.volume(2, 16)) for letter in groups["b"]}
    batch = max(1, _product(sizes.values()))
    letters = groups["m"] + groups["n"] + groups["k"]
    limits = (5e5, 5e7) if groups["m"] else (5e4, 4e6)
    volume = max(draw.volume(*limits) / batch, 4096)
    extents = draw.shape(volume, len(letters), 4096)
    return sizes | dict(zip(letters, draw.shuffled(extents), strict=True))


def _product(values) -> int:
    result = 1
    for value in values:
        result *= value
    return result


def _order(draw: Draw, groups: dict[str, str], kinds: str) -> str:
    """Returns the dimensions of one term: groups in order, groups shuffled, or all shuffled."""
    how = draw.weighted({"plain": 60, "groups": 28, "letters": 12})
    if how == "groups":
        kinds = "".join(draw.shuffled(kinds))
    letters = "".join(groups[kind] for kind in kinds)
    return "".join(draw.shuffled(letters)) if how == "letters" else letters


def _operand(draw: Draw, shape):
    operand = draw.operand(shape)
    return elementwise(draw, operand, draw.one_of((1, 2))) if draw.chance(0.1) else operand


def _narrow(draw: Draw, formula: str, shapes):
    element = draw.one_of(NARROW)
    wide = jnp.int32 if element == jnp.int8 else jnp.float32
    left, right = (draw.operand(shape, element) for shape in shapes[:2])
    result = jnp.einsum(formula, left, right, preferred_element_type=wide)
    return result.astype(jnp.float32) * 0.01 if draw.chance(0.5) else result


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


def _family(groups: dict[str, str], terms: list[str], after: str) -> str:
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
