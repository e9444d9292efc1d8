"""The kernels that are measured: families of small array programs, each at several shapes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .kernel import Kernel


def matmul(m: int, n: int, k: int) -> Kernel:
    def windows(s, t, r, rt):
        return [((s[0], r), (t[0], rt)), ((r, s[1]), (rt, t[1]))]

    return Kernel("", "matmul", ((m, k), (k, n)), (m, n), windows, lambda x, y: x @ y, k)


def matmul_transposed(m: int, n: int, k: int) -> Kernel:
    def windows(s, t, r, rt):
        return [((r, s[0]), (rt, t[0])), ((s[1], r), (t[1], rt))]

    def compute(x, y):
        return jnp.einsum("km,nk->mn", x, y)

    return Kernel("", "matmul_transposed", ((k, m), (n, k)), (m, n), windows, compute, k)


def matmul_bias_gelu(m: int, n: int, k: int) -> Kernel:
    def windows(s, t, r, rt):
        return [((s[0], r), (t[0], rt)), ((r, s[1]), (rt, t[1])), ((s[1],), (t[1],))]

    return Kernel(
        "",
        "matmul_bias_gelu",
        ((m, k), (k, n), (n,)),
        (m, n),
        windows,
        lambda x, y, _: x @ y,
        k,
        lambda out, _x, _y, bias: jax.nn.gelu(out + bias),
    )


def batched_matmul(b: int, m: int, n: int, k: int) -> Kernel:
    def windows(s, t, r, rt):
        return [((s[0], s[1], r), (t[0], t[1], rt)), ((s[0], r, s[2]), (t[0], rt, t[2]))]

    def compute(x, y):
        return jnp.einsum("bmk,bkn->bmn", x, y)

    return Kernel("", "batched_matmul", ((b, m, k), (b, k, n)), (b, m, n), windows, compute, k)


def elementwise_reduce(m: int, n: int, k: int) -> Kernel:
    def windows(s, t, r, rt):
        return [((s[0], s[1], r), (*t, rt))] * 2

    def compute(x, y):
        return (jnp.tanh(x) * y).sum(-1)

    shape = (m, n, k)
    return Kernel("", "elementwise_reduce", (shape, shape), (m, n), windows, compute, k)


def column_reduce(k: int, m: int, n: int) -> Kernel:
    def windows(s, t, r, rt):
        return [((r, s[0], s[1]), (rt, *t))]

    return Kernel(
        "", "column_reduce", ((k, m, n),), (m, n), windows, lambda x: jnp.abs(x).sum(0), k
    )


def pairwise_distance(m: int, n: int, k: int) -> Kernel:
    def windows(s, t, r, rt):
        return [((s[0], r), (t[0], rt)), ((s[1], r), (t[1], rt))]

    def compute(x, y):
        return ((x[:, None, :] - y[None, :, :]) ** 2).sum(-1)

    return Kernel("", "pairwise_distance", ((m, k), (n, k)), (m, n), windows, compute, k)


def softmax(m: int, n: int, k: int) -> Kernel:
    def windows(s, t, _r, _rt):
        return [((s[0], s[1], 0), (t[0], t[1], k))]

    # The output tile's last dimension is the whole row: rows are what is tiled.
    return _rowwise("softmax", ((m, n, k),), windows, lambda x: jax.nn.softmax(x, -1), k)


def layer_norm(m: int, n: int, k: int) -> Kernel:
    def windows(s, t, _r, _rt):
        return [((s[0], s[1], 0), (t[0], t[1], k)), ((0,), (k,))]

    def compute(x, scale):
        centred = x - x.mean(-1, keepdims=True)
        return centred * lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale

    return _rowwise("layer_norm", ((m, n, k), (k,)), windows, compute, k)


def _rowwise(family: str, inputs, windows, compute, row: int) -> Kernel:
    return Kernel("", family, inputs, inputs[0], windows, compute, fixed_reduction=(row,))


def transpose(a: int, b: int, c: int) -> Kernel:
    def windows(s, t, _r, _rt):
        return [((s[2], s[1], s[0]), (t[2], t[1], t[0]))]

    def compute(x):
        return x.transpose(2, 1, 0) + 1.0

    return Kernel("", "transpose", ((c, b, a),), (a, b, c), windows, compute)


def outer_product(m: int, n: int) -> Kernel:
    def windows(s, t, _r, _rt):
        return [((s[0],), (t[0],)), ((s[1],), (t[1],))]

    def compute(x, y):
        return jnp.exp(x[:, None] * y[None, :])

    return Kernel("", "outer_product", ((m,), (n,)), (m, n), windows, compute)


def elementwise_chain(m: int, n: int) -> Kernel:
    def windows(s, t, _r, _rt):
        return [(s, t), (s, t), ((s[1],), (t[1],))]

    def compute(x, y, bias):
        return jax.nn.gelu(x + bias) * jax.nn.sigmoid(y)

    return Kernel("", "elementwise_chain", ((m, n), (m, n), (n,)), (m, n), windows, compute)


def transposed_add(m: int, n: int) -> Kernel:
    def windows(s, t, _r, _rt):
        return [(s, t), ((s[1], s[0]), (t[1], t[0]))]

    return Kernel(
        "", "transposed_add", ((m, n), (n, m)), (m, n), windows, lambda x, y: jnp.tanh(x) + y.T
    )


_NHWC = ("NHWC", "HWIO", "NHWC")


def convolution(b: int, side: int, channels: int, width: int) -> Kernel:
    def windows(s, t, _r, _rt):
        piece = (t[0], t[1] + 2, t[2] + 2, channels)
        weights = (3, 3, channels, t[3])
        return [((s[0], s[1], s[2], 0), piece), ((0, 0, 0, s[3]), weights)]

    def compute(x, w):
        return lax.conv_general_dilated(x, w, (1, 1), "VALID", dimension_numbers=_NHWC)

    inputs = ((b, side + 2, side + 2, channels), (3, 3, channels, width))
    output = (b, side, side, width)
    return Kernel(
        "", "convolution", inputs, output, windows, compute, fixed_reduction=(3, 3, channels)
    )


def depthwise_convolution(b: int, side: int, channels: int) -> Kernel:
    def windows(s, t, _r, _rt):
        return [(s, (t[0], t[1] + 2, t[2] + 2, t[3])), ((0, 0, s[3]), (3, 3, t[3]))]

    def compute(x, w):
        height, width = x.shape[1] - 2, x.shape[2] - 2
        shifted = [
            x[:, i : i + height, j : j + width] * w[i, j] for i in range(3) for j in range(3)
        ]
        return sum(shifted[1:], shifted[0])

    inputs = ((b, side + 2, side + 2, channels), (3, 3, channels))
    output = (b, side, side, channels)
    return Kernel(
        "", "depthwise_convolution", inputs, output, windows, compute, fixed_reduction=(3, 3)
    )


def max_pool(b: int, side: int, channels: int) -> Kernel:
    def windows(s, t, _r, _rt):
        return [((s[0], 2 * s[1], 2 * s[2], s[3]), (t[0], 2 * t[1], 2 * t[2], t[3]))]

    def compute(x):
        window = (1, 2, 2, 1)
        return lax.reduce_window(x, -jnp.inf, lax.max, window, window, "VALID")

    inputs = ((b, 2 * side, 2 * side, channels),)
    output = (b, side, side, channels)
    return Kernel("", "max_pool", inputs, output, windows, compute, fixed_reduction=(2, 2))


_LENGTHS = (32, 48, 64, 96, 120, 128, 144, 160, 192, 240, 256, 288, 320, 384, 480, 512)


@dataclass(frozen=True)
class _Family:
    make: Callable[..., Kernel]
    choices: tuple[tuple[int, ...], ...]
    """Lengths to draw from, one tuple per argument."""
    work: tuple[int, int]
    """Smallest and largest product of the arguments, which keeps a run near a few milliseconds."""


_FAMILIES = (
    _Family(matmul, (_LENGTHS, _LENGTHS, _LENGTHS), (4_000_000, 30_000_000)),
    _Family(softmax, ((8, 12, 16, 24), _LENGTHS[:9], _LENGTHS), (100_000, 600_000)),
    _Family(convolution, ((1, 2, 4), (16, 24, 32, 40), (8, 16, 24, 32), (16, 32, 48, 64)), (10_000, 120_000)),
    _Family(elementwise_reduce, ((16, 24, 32, 48, 64), _LENGTHS[:9], _LENGTHS), (300_000, 1_500_000)),
    _Family(transpose, ((24, 32, 48, 64, 96), (8, 12, 16, 24, 32), (48, 64, 96, 120, 128)), (60_000, 300_000)),
    _Family(matmul_bias_gelu, (_LENGTHS, _LENGTHS, _LENGTHS), (4_000_000, 25_000_000)),
    _Family(layer_norm, ((8, 12, 16, 24), _LENGTHS[:9], _LENGTHS), (200_000, 1_200_000)),
    _Family(outer_product, (_LENGTHS, _LENGTHS), (30_000, 260_000)),
    _Family(batched_matmul, ((4, 6, 8, 12, 16), _LENGTHS[:9], _LENGTHS[:9], _LENGTHS[:9]), (4_000_000, 25_000_000)),
    _Family(max_pool, ((2, 4, 8), (12, 16, 24, 32), (16, 32, 48, 64)), (1_500, 8_000)),
    _Family(matmul_transposed, (_LENGTHS, _LENGTHS, _LENGTHS), (4_000_000, 25_000_000)),
    _Family(column_reduce, ((16, 24, 32, 48, 64), (16, 24, 32, 48, 64), _LENGTHS), (300_000, 2_000_000)),
    _Family(elementwise_chain, (_LENGTHS, _LENGTHS), (50_000, 260_000)),
    _Family(depthwise_convolution, ((1, 2, 4), (16, 24, 32, 48), (16, 24, 32, 48, 64)), (1_500, 8_000)),
    _Family(pairwise_distance, (_LENGTHS, _LENGTHS, (16, 24, 32, 48, 64)), (800_000, 4_000_000)),
    _Family(transposed_add, (_LENGTHS, _LENGTHS), (50_000, 260_000)),
)  # fmt: skip


_DRAWS = ((7, 11), (8, 6))
"""Seed and shapes per family of each draw; a later draw adds kernels and changes none."""


def kernels(draws: Sequence[tuple[int, int]] = _DRAWS) -> list[Kernel]:
    """The kernels of every draw; families alternate, so a stop keeps the balance."""
    found: dict[str, Kernel] = {}
    for seed, shapes in draws:
        random = np.random.default_rng(seed)
        drawn = [_draw(family, shapes, random) for family in _FAMILIES]
        for row in zip(*drawn, strict=True):
            found.update((kernel.name, kernel) for kernel in row if kernel.name not in found)
    return list(found.values())


def _draw(family: _Family, count: int, random: np.random.Generator) -> list[Kernel]:
    chosen: dict[str, Kernel] = {}
    while len(chosen) < count:
        sizes = [int(random.choice(options)) for options in family.choices]
        if family.work[0] <= prod(sizes) <= family.work[1]:
            kernel = family.make(*sizes)
            name = "_".join([kernel.family, *map(str, sizes)])
            chosen[name] = Kernel(**{**vars(kernel), "name": name})
    return list(chosen.values())
