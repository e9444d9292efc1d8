"""Random windows: convolutions, pooling and stencils of random rank, layout and stride."""

from math import prod

import jax.numpy as jnp
from jax import lax

from hlorank_training.measuring.draw import Draw, elementwise

SPATIAL = "XYZ"


def window(draw: Draw):
    """Draws an operation over windows; returns family and result."""
    kind = draw.weighted({"convolution": 72, "pooling": 18, "stencil": 10})
    return {"convolution": _convolution, "pooling": _pooling, "stencil": _stencil}[kind](draw)


def _convolution(draw: Draw):
    letters = SPATIAL[: draw.weighted({1: 22, 2: 73, 3: 5})]
    rank = len(letters)
    grouping = draw.weighted({"none": 72, "depthwise": 20, "grouped": 8})
    # The extents of the window, mostly all equal.
    weights = {1: 14, 2: 6, 3: 50, 4: 4, 5: 14, 7: 10, 9: 4}
    drawn = [min({1: 9, 2: 7, 3: 3}[rank], draw.weighted(weights)) for _ in letters]
    window = _extents(draw, letters, drawn, 0.85)
    stride = draw.weighted({1: 70, 2: 24, 3: 3, 4: 3})
    dilation = draw.weighted({1: 88, 2: 9, 3: 3}) if stride == 1 else 1
    inputs, outputs, groups = _channels(draw, grouping)
    taps = inputs // groups * outputs * prod(window.values())
    # The result has about this many positions.
    volume = max(draw.volume(1e6, 4e7) / taps, 9)
    side = min(volume ** (1 / rank) * stride, {1: 16384, 2: 160, 3: 48}[rank])
    sides = _extents(draw, letters, [max(8, draw.size(side)) for _ in letters], 0.8)
    sides = {letter: max(sides[letter], window[letter] * dilation) for letter in letters}
    # The orders of the dimensions of image, weights and result.
    last = f"N{letters}C"
    first = f"NC{letters}"
    order = draw.weighted({last: 55, first: 33, f"C{letters}N": 6, f"{letters}CN": 6})
    plain = f"{letters}IO" if order == last else f"OI{letters}"
    kernel = {plain: 75, f"OI{letters}": 10, f"O{letters}I": 10, f"{letters}OI": 5}
    kernel = draw.weighted(kernel)
    result = order if draw.chance(0.9) else draw.one_of((last, first))
    extents = {"N": draw.weighted({1: 8, 2: 1, 4: 1}), "C": inputs} | sides
    image = draw.operand([extents[letter] for letter in order])
    extents = {"I": inputs // groups, "O": outputs} | window
    weights = draw.operand([extents[letter] for letter in kernel])
    image = elementwise(draw, image, 1) if draw.chance(0.08) else image
    padding = [(0, 0)] * rank
    if not draw.chance(0.4):
        reach = [(window[letter] - 1) * dilation for letter in letters]
        padding = [(extent // 2, extent - extent // 2) for extent in reach]
    x = lax.conv_general_dilated(
        image,
        weights,
        [stride] * rank,
        padding,
        rhs_dilation=[dilation] * rank,
        dimension_numbers=(order, kernel, result),
        feature_group_count=groups,
    )
    x = elementwise(draw, x, draw.one_of((1, 2, 3))) if draw.chance(0.45) else x
    return _family(letters, grouping, order, stride, window), x


def _extents(draw: Draw, letters: str, drawn: list[int], equal: float) -> dict[str, int]:
    """Returns an extent of each dimension, with a probability that they are equal."""
    square = draw.chance(equal)
    return {letter: drawn[0] if square else drawn[i] for i, letter in enumerate(letters)}


def _channels(draw: Draw, grouping: str) -> tuple[int, int, int]:
    """Returns the numbers of input channels, output channels and groups."""
    if grouping == "depthwise":
        inputs = draw.size(draw.volume(16, 512))
        return inputs, inputs * draw.weighted({1: 8, 2: 1}), inputs
    if grouping == "grouped":
        groups = draw.one_of((2, 4, 8))
        return groups * draw.one_of((4, 8, 16, 24)), groups * draw.one_of((4, 8, 16, 32)), groups
    inputs = 3 if draw.chance(0.1) else draw.size(draw.volume(4, 320))
    return inputs, draw.size(draw.volume(8, 320)), 1


def _family(letters: str, grouping: str, order: str, stride: int, window: dict[str, int]) -> str:
    if grouping != "none":
        return f"convolution_{grouping}"
    if len(letters) != 2:
        return f"convolution_{len(letters)}d"
    if stride > 1:
        return "convolution_strided"
    if max(window.values()) == 1:
        return "convolution_pointwise"
    return f"convolution_channels_{'last' if order == 'NXYC' else 'first'}"


def _pooling(draw: Draw):
    rank = draw.weighted({1: 25, 2: 75})
    channels = draw.size(draw.volume(4, 256))
    shape = draw.shape(draw.volume(2e4, 1e6) / channels, rank, 65536 if rank == 1 else 224)
    # The order of channels (0) and spatial dimensions.
    spatial = list(range(1, rank + 1))
    axes = [*spatial, 0] if draw.chance(0.6) else [0, *spatial]
    extents = [channels, *(max(side, 12) for side in shape)]
    size = draw.one_of((2, 3, 4, 5, 7))
    step = draw.one_of((1, 2, size))
    x = draw.operand([extents[axis] for axis in axes])
    sizes, steps = ([value if axis else 1 for axis in axes] for value in (size, step))
    zero, combine = draw.one_of(((-jnp.inf, lax.max), (0.0, lax.add), (jnp.inf, lax.min)))
    x = lax.reduce_window(x, zero, combine, sizes, steps, draw.one_of(("VALID", "SAME")))
    return "pooling", elementwise(draw, x, 1) if draw.chance(0.3) else x


def _stencil(draw: Draw):
    """A weighted sum of shifted copies of an array."""
    rank = draw.one_of((1, 2, 2, 3))
    shape = [max(12, side) for side in draw.shape(draw.volume(3e4, 2e6), rank, 1e6)]
    x = draw.operand(shape)
    reach = draw.one_of((1, 2))
    inner = [side - 2 * reach for side in shape]
    total = 0
    for axis in range(rank):
        for shift in draw.some_of(range(2 * reach + 1), draw.one_of((2, 3))):
            start = [shift if other == axis else reach for other in range(rank)]
            weight = draw.one_of((-1.0, 0.25, 0.5, 2.0))
            total = total + weight * lax.slice(
                x, start, [s + i for s, i in zip(start, inner, strict=True)]
            )
    return "stencil", elementwise(draw, total, 1) if draw.chance(0.3) else total
