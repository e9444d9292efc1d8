"""The operations of networks and image processing, of which random pipelines are made.

An operation adds functions to a canvas, and returns the new tensor, or None if it does not suit.
"""

from collections.abc import Callable, Sequence
from random import Random

import halide as hl

from hlorank_training.measuring.halide.canvas import Canvas, Tensor

MIN_ELEMENTS = 1 << 13
MAX_ELEMENTS = 1 << 18
"""Limits of the size of a tensor."""
_MAX_COST = 4e7
"""Maximum number of operations of a convolution or a product."""
_MIN_EXTENT = 16
"""Extents below are not divided."""

Operation = Callable[[Canvas, Random, Sequence[Tensor], Tensor], Tensor | None]
"""Takes the canvas, random numbers, all tensors so far, and the tensor that it is applied to."""


def _pad(canvas: Canvas, random: Random, t: Tensor) -> Tensor:
    """Extends a tensor beyond its border, by the border or by zeros."""
    x = hl.clamp(canvas.x, 0, t.width - 1)
    y = hl.clamp(canvas.y, 0, t.height - 1)
    value = canvas.at(t, x, y, canvas.c)
    if random.random() < 0.5:
        inside = (canvas.x >= 0) & (canvas.x < t.width) & (canvas.y >= 0) & (canvas.y < t.height)
        value = hl.select(inside, value, 0.0)
    return canvas.define("pad", value, t.shape)


def _convolution(canvas: Canvas, random: Random, _, t: Tensor) -> Tensor | None:
    size = random.choice([1, 1, 3, 3, 5])
    outputs = random.choice([4, 8, 16, 24, 32, 64])
    stride = random.choice([1, 1, 1, 2]) if min(t.plane) >= _MIN_EXTENT else 1
    shape = t.width // stride, t.height // stride, outputs
    elements = shape[0] * shape[1] * outputs
    cost = 2.0 * t.channels * size * size
    if elements > MAX_ELEMENTS or elements * cost > _MAX_COST:
        return None
    source = _pad(canvas, random, t) if size > 1 else t
    weights = canvas.image(*canvas.order(size, size, t.channels), outputs)
    bias = canvas.image(outputs)
    r = hl.RDom([(0, size), (0, size), (0, t.channels)])
    x = canvas.x * stride + r.x - size // 2
    y = canvas.y * stride + r.y - size // 2
    term = weights[(*canvas.order(r.x, r.y, r.z), canvas.c)] * canvas.at(source, x, y, r.z)
    scale = (t.channels * size * size) ** -0.5
    step = lambda total: total + term * scale  # noqa: E731
    return canvas.reduce(f"convolution{size}", bias[canvas.c], step, shape, cost)


def _depthwise(canvas: Canvas, random: Random, _, t: Tensor) -> Tensor | None:
    size = random.choice([3, 3, 5, 7])
    source = _pad(canvas, random, t)
    weights = canvas.image(size, size, t.channels)
    r = hl.RDom([(0, size), (0, size)])
    x = canvas.x + r.x - size // 2
    y = canvas.y + r.y - size // 2
    term = weights[r.x, r.y, canvas.c] * canvas.at(source, x, y, canvas.c) * (1.0 / size)
    return canvas.reduce("depthwise", 0.0, lambda total: total + term, t.shape, 2.0 * size * size)


def _pool(canvas: Canvas, random: Random, _, t: Tensor) -> Tensor | None:
    size, stride = random.choice([(2, 2), (2, 2), (3, 2), (3, 1)])
    if stride > 1 and min(t.plane) < _MIN_EXTENT:
        return None
    source = _pad(canvas, random, t) if size == 3 else t
    r = hl.RDom([(0, size), (0, size)])
    value = canvas.at(source, canvas.x * stride + r.x, canvas.y * stride + r.y, canvas.c)
    shape = t.width // stride, t.height // stride, t.channels
    if random.random() < 0.5:
        return canvas.reduce("maximum", -1e30, lambda so_far: hl.max(so_far, value), shape, size**2)
    mean = value * (1.0 / size**2)
    return canvas.reduce("average", 0.0, lambda total: total + mean, shape, 2.0 * size**2)


_ELEMENTWISE: dict[str, Callable[[hl.Expr], hl.Expr]] = {
    "relu": lambda v: hl.max(v, 0.0),
    "sigmoid": lambda v: 1.0 / (1.0 + hl.exp(-v)),
    "tanh": hl.tanh,
    "leaky": lambda v: hl.select(v > 0.0, v, v * 0.1),
    "hard_swish": lambda v: v * hl.clamp(v * (1.0 / 6.0) + 0.5, 0.0, 1.0),
    "exponential": lambda v: hl.exp(hl.clamp(v, -4.0, 2.0)),
    "root": lambda v: hl.sqrt(hl.abs(v) + 0.01),
    "square": lambda v: hl.clamp(v * v, 0.0, 8.0),
    "affine": lambda v: v * 0.7 + 0.2,
    "silu": lambda v: v / (1.0 + hl.exp(-v)),
}


def _elementwise(canvas: Canvas, random: Random, _, t: Tensor) -> Tensor | None:
    kind = random.choice([*_ELEMENTWISE, "relu"])
    return canvas.define(kind, _ELEMENTWISE[kind](canvas.here(t)), t.shape, 4.0)


def _normalize(canvas: Canvas, random: Random, _, t: Tensor) -> Tensor | None:
    scale = canvas.image(t.channels)
    shift = canvas.image(t.channels)
    value = canvas.here(t) * scale[canvas.c] + shift[canvas.c]
    return canvas.define("normalize", value, t.shape, 2.0)


_BINARY: dict[str, Callable[[hl.Expr, hl.Expr], hl.Expr]] = {
    "add": lambda a, b: a + b,
    "multiply": lambda a, b: a * b * 0.5,
    "maximum": hl.max,
    "difference": lambda a, b: a - b,
}


def _binary(canvas: Canvas, random: Random, tensors: Sequence[Tensor], t: Tensor) -> Tensor | None:
    others = [other for other in tensors if other.shape == t.shape and other is not t]
    if not others:
        return None
    kind = random.choice([*_BINARY, "add", "add"])
    value = _BINARY[kind](canvas.here(t), canvas.here(random.choice(others)))
    return canvas.define(kind, value, t.shape)


def _concatenate(
    canvas: Canvas, random: Random, tensors: Sequence[Tensor], t: Tensor
) -> Tensor | None:
    others = [other for other in tensors if other.plane == t.plane and other is not t]
    if not others:
        return None
    other = random.choice(others)
    c = canvas.c
    shape = *t.plane, t.channels + other.channels
    first = canvas.at(t, canvas.x, canvas.y, hl.clamp(c, 0, t.channels - 1))
    rest = hl.clamp(c - t.channels, 0, other.channels - 1)
    second = canvas.at(other, canvas.x, canvas.y, rest)
    return canvas.define("concatenate", hl.select(c < t.channels, first, second), shape)


def _softmax(canvas: Canvas, random: Random, _, t: Tensor) -> Tensor | None:
    x = canvas.x
    y = canvas.y
    r = hl.RDom([(0, t.channels)])
    largest = canvas.function("largest")
    total = canvas.function("total")
    largest[x, y] = -1e30
    largest[x, y] = hl.max(largest[x, y], canvas.at(t, x, y, r.x))
    power = canvas.define("power", hl.exp(canvas.here(t) - largest[x, y]), t.shape, 10.0)
    total[x, y] = 0.0
    total[x, y] += canvas.at(power, x, y, r.x)
    return canvas.define("softmax", canvas.here(power) / total[x, y], t.shape, 2.0)


def _layer_norm(canvas: Canvas, random: Random, _, t: Tensor) -> Tensor | None:
    x = canvas.x
    y = canvas.y
    r = hl.RDom([(0, t.channels)])
    share = 1.0 / t.channels
    mean = canvas.function("mean")
    variance = canvas.function("variance")
    mean[x, y] = 0.0
    mean[x, y] += canvas.at(t, x, y, r.x) * share
    centered = canvas.define("centered", canvas.here(t) - mean[x, y], t.shape, 2.0)
    deviation = canvas.at(centered, x, y, r.x)
    variance[x, y] = 0.0
    variance[x, y] += deviation * deviation * share
    value = canvas.here(centered) / hl.sqrt(variance[x, y] + 1e-3)
    return canvas.define("layer_norm", value, t.shape, 4.0)


def _excite(canvas: Canvas, random: Random, _, t: Tensor) -> Tensor | None:
    """Scales channels by a gate, a small product of their means."""
    c = canvas.c
    weights = canvas.image(t.channels, t.channels)
    plane = hl.RDom([(0, t.width), (0, t.height)])
    k = hl.RDom([(0, t.channels)])
    mean = canvas.function("plane_mean")
    gate = canvas.function("gate")
    mean[c] = 0.0
    mean[c] += canvas.at(t, plane.x, plane.y, c) * (1.0 / (t.width * t.height))
    gate[c] = 0.0
    gate[c] += weights[k.x, c] * mean[k.x]
    value = canvas.here(t) / (1.0 + hl.exp(-gate[c]))
    return canvas.define("excite", value, t.shape, 3.0)


def _product(canvas: Canvas, random: Random, tensors: Sequence[Tensor], t: Tensor) -> Tensor | None:
    """Multiplies rows with rows, as attention does."""
    shape = (t.width, t.height, t.width)
    cost = 2.0 * t.channels
    elements = t.width * t.height * t.width
    if elements > MAX_ELEMENTS or elements * cost > _MAX_COST:
        return None
    other = random.choice([other for other in tensors if other.shape == t.shape])
    r = hl.RDom([(0, t.channels)])
    term = canvas.at(t, canvas.x, canvas.y, r.x) * canvas.at(other, canvas.c, canvas.y, r.x)
    step = lambda total: total + term * (1.0 / t.channels)  # noqa: E731
    return canvas.reduce("product", 0.0, step, shape, cost)


def _blur(canvas: Canvas, random: Random, _, t: Tensor) -> Tensor | None:
    x = canvas.x
    y = canvas.y
    c = canvas.c
    source = _pad(canvas, random, t)
    weights = (0.25, 0.5, 0.25)
    terms = [canvas.at(source, x + n - 1, y, c) * weight for n, weight in enumerate(weights)]
    across = canvas.define("blur_x", terms[0] + terms[1] + terms[2], t.shape, 4.0)
    terms = [canvas.at(across, x, y + n - 1, c) * weight for n, weight in enumerate(weights)]
    return canvas.define("blur_y", terms[0] + terms[1] + terms[2], t.shape, 4.0)


def _sobel(canvas: Canvas, random: Random, _, t: Tensor) -> Tensor | None:
    source = _pad(canvas, random, t)

    def side(dx: int, dy: int) -> hl.Expr:
        """Sums the three neighbours on one side."""
        ends = (-1, 0, 1)
        places = [(dx, along) if dx else (along, dy) for along in ends]
        taps = [canvas.at(source, canvas.x + a, canvas.y + b, canvas.c) for a, b in places]
        return taps[0] + 2.0 * taps[1] + taps[2]

    along_x = canvas.define("gradient_x", side(1, 0) - side(-1, 0), t.shape, 8.0)
    along_y = canvas.define("gradient_y", side(0, 1) - side(0, -1), t.shape, 8.0)
    squares = [canvas.here(gradient) * canvas.here(gradient) for gradient in (along_x, along_y)]
    return canvas.define("edges", hl.sqrt(squares[0] + squares[1] + 1e-6), t.shape, 5.0)


def _upsample(canvas: Canvas, random: Random, _, t: Tensor) -> Tensor | None:
    if 4 * t.elements > MAX_ELEMENTS:
        return None
    x = canvas.x
    y = canvas.y
    c = canvas.c
    shape = (2 * t.width, 2 * t.height, t.channels)
    if random.random() < 0.5:
        return canvas.define("nearest", canvas.at(t, x // 2, y // 2, c), shape)
    source = _pad(canvas, random, t)
    near, far = (canvas.at(source, at, y, c) for at in (x // 2, x // 2 - 1 + 2 * (x % 2)))
    wide = canvas.define("up_x", near * 0.75 + far * 0.25, (2 * t.width, t.height, t.channels), 3.0)
    near, far = (canvas.at(wide, x, at, c) for at in (y // 2, y // 2 - 1 + 2 * (y % 2)))
    return canvas.define("up_y", near * 0.75 + far * 0.25, shape, 3.0)


def _downsample(canvas: Canvas, random: Random, _, t: Tensor) -> Tensor | None:
    if min(t.plane) < _MIN_EXTENT:
        return None
    corners = [(0, 0), (1, 0), (0, 1), (1, 1)]
    taps = [canvas.at(t, 2 * canvas.x + dx, 2 * canvas.y + dy, canvas.c) for dx, dy in corners]
    shape = t.width // 2, t.height // 2, t.channels
    return canvas.define("down", (taps[0] + taps[1] + taps[2] + taps[3]) * 0.25, shape, 4.0)


def _transpose(canvas: Canvas, random: Random, _, t: Tensor) -> Tensor | None:
    value = canvas.at(t, canvas.y, canvas.x, canvas.c)
    return canvas.define("transpose", value, (t.height, t.width, t.channels))


def _scan(canvas: Canvas, random: Random, _, t: Tensor) -> Tensor | None:
    """A recurrence along x."""
    function = canvas.function("scan")
    r = hl.RDom([(1, t.width - 1)])
    place, before = (canvas.order(x, canvas.y, canvas.c) for x in (r.x, r.x - 1))
    function[canvas.place] = canvas.here(t)
    function[place] = function[place] * 0.5 + function[before] * 0.5
    return canvas.counted(Tensor(function, *t.shape), 3.0)


OPERATIONS: dict[Operation, float] = {
    _convolution: 6,
    _elementwise: 6,
    _binary: 6,
    _depthwise: 3,
    _pool: 3,
    _normalize: 2,
    _concatenate: 1.5,
    _softmax: 1.5,
    _blur: 1.5,
    _upsample: 1.5,
    _layer_norm: 1.2,
    _excite: 1.2,
    _product: 1,
    _sobel: 1,
    _downsample: 1,
    _transpose: 0.7,
    _scan: 0.5,
}
"""How often each is drawn, relative to the others."""
