"""Random windows: convolutions, pooling and stencils of random rank, layout and stride."""

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
    grouping = draw.weighted({"none": 72, "depthwise": 20, "grouped": 8})
    window = _window(draw, letters)
    stride, dilation = _strides(draw)
    inputs, outputs, groups = _channels(draw, grouping)
    taps = inputs // groups * outputs
    for extent in window.values():
        taps *= extent
    volume = max(draw.volume(1e6, 4e7) / taps, 9)
    sides = _sides(draw, letters, volume, stride)
    sides = {letter: max(sides[letter], window[letter] * dilation) for letter in letters}
    order, kernel, result = _layout(draw, letters)
    extents = {"N": draw.weighted({1: 8, 2: 1, 4: 1}), "C": inputs} | sides
    image = draw.operand([extents[letter] for letter in order])
    extents = {"I": inputs // groups, "O": outputs} | window
    weights = draw.operand([extents[letter] for letter in kernel])
    x = lax.conv_general_dilated(
        elementwise(draw, image, 1) if draw.chance(0.08) else image,
        weights,
        [stride] * len(letters),
        _padding(draw, letters, window, dilation),
        rhs_dilation=[dilation] * len(letters),
        dimension_numbers=(order, kernel, result),
        feature_group_count=groups,
    )
    x = elementwise(draw, x, draw.one_of((1, 2, 3))) if draw.chance(0.45) else x
    return _family(letters, grouping, order, stride, window), x


def _window(draw: Draw, letters: str) -> dict[str, int]:
    """Returns the extents of the window, mostly all equal."""
    largest = {1: 9, 2: 7, 3: 3}[len(letters)]
    weights = {1: 14, 2: 6, 3: 50, 4: 4, 5: 14, 7: 10, 9: 4}
    extents = [min(largest, draw.weighted(weights)) for _ in letters]
    square = draw.chance(0.85)
    return {letter: extents[0] if square else extents[i] for i, letter in enumerate(letters)}


def _strides(draw: Draw) -> tuple[int, int]:
    stride = draw.weighted({1: 70, 2: 24, 3: 3, 4: 3})
    return stride, draw.weighted({1: 88, 2: 9, 3: 3}) if stride == 1 else 1


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


def _sides(draw: Draw, letters: str, volume: float, stride: int) -> dict[str, int]:
    """Returns the extents of the image so that the result has about ``volume`` positions."""
    largest = {1: 16384, 2: 160, 3: 48}[len(letters)]
    side = min(volume ** (1 / len(letters)) * stride, largest)
    sides = [max(8, draw.size(side)) for _ in letters]
    square = draw.chance(0.8)
    return {letter: sides[0] if square else sides[i] for i, letter in enumerate(letters)}


def _layout(draw: Draw, letters: str) -> tuple[str, str, str]:
    """Returns the order of dimensions of image, weights and result."""
    last = f"N{letters}C"
    first = f"NC{letters}"
    image = draw.weighted({last: 55, first: 33, f"C{letters}N": 6, f"{letters}CN": 6})
    plain = f"{letters}IO" if image == last else f"OI{letters}"
    weights = draw.weighted({plain: 75, f"OI{letters}": 10, f"O{letters}I": 10, f"{letters}OI": 5})
    return image, weights, image if draw.chance(0.9) else draw.one_of((last, first))


def _padding(draw: Draw, letters: str, window: dict[str, int], dilation: int):
    if draw.chance(0.4):
        return [(0, 0)] * len(letters)
    reach = [(window[letter] - 1) * dilation for letter in letters]
    return [(extent // 2, extent - extent // 2) for extent in reach]


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
    axes = _axes(draw, rank)
    extents = [channels, *(max(side, 12) for side in shape)]
    size = draw.one_of((2, 3, 4, 5, 7))
    step = draw.one_of((1, 2, size))
    x = draw.operand([extents[axis] for axis in axes])
    sizes, steps = ([value if axis else 1 for axis in axes] for value in (size, step))
    zero, combine = draw.one_of(((-jnp.inf, lax.max), (0.0, lax.add), (jnp.inf, lax.min)))
    x = lax.reduce_window(x, zero, combine, sizes, steps, draw.one_of(("VALID", "SAME")))
    return "pooling", elementwise(draw, x, 1) if draw.chance(0.3) else x


def _axes(draw: Draw, rank: int) -> list[int]:
    """Returns the order of channels (0) and spatial dimensions."""
    spatial = list(range(1, rank + 1))
    return [*spatial, 0] if draw.chance(0.6) else [0, *spatial]


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
