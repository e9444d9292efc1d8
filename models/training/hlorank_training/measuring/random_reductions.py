"""Random reductions, softmax functions and normalizations over random axes."""

import jax

from hlorank_training.measuring.draw import Draw
from hlorank_training.measuring.random_operations import elementwise, normalized, reduced


def reduction(draw: Draw):
    """Draws a reduction of an array of random rank; returns family and result."""
    kind = draw.weighted({"reduction": 60, "softmax": 20, "normalization": 20})
    x, axes = _array(draw)
    if kind == "softmax":
        return "softmax", _softmax(draw, x, axes)
    if kind == "normalization":
        return "normalization", normalized(draw, x, axes)
    result = reduced(draw, x, axes)
    result = elementwise(draw, result, 1) if result.ndim and draw.chance(0.3) else result
    return f"reduction_{_place(axes, x.ndim)}", result


def _array(draw: Draw):
    """Returns an array, often after elementwise operations, and axes of it."""
    shape = draw.shape(draw.volume(3e4, 3e6), draw.weighted({1: 5, 2: 40, 3: 35, 4: 20}))
    x = draw.operand(shape)
    x = elementwise(draw, x, draw.one_of((1, 2))) if draw.chance(0.4) else x
    count = min(x.ndim, draw.weighted({1: 70, 2: 25, 3: 5}))
    minor = draw.chance(0.25)
    axes = range(x.ndim - count, x.ndim) if minor else draw.some_of(range(x.ndim), count)
    return x, tuple(axes)


def _softmax(draw: Draw, x, axes: tuple[int, ...]):
    function = draw.weighted({jax.nn.softmax: 3, jax.nn.log_softmax: 1})
    return function(x, axes[0] if draw.chance(0.8) else axes)


def _place(axes: tuple[int, ...], rank: int) -> str:
    """Returns whether the reduced axes are the minor ones, the major ones or mixed."""
    if axes == tuple(range(rank - len(axes), rank)):
        return "minor"
    return "major" if axes == tuple(range(len(axes))) else "mixed"
