"""Families of kernels: small array programs, each a function of its shape."""

import jax
import jax.numpy as jnp
from jax import lax

from hlorank_training.measuring.kernel import Kernel


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

    # A tile always covers whole rows, so only the number of rows is chosen.
    return _rowwise("softmax", ((m, n, k),), windows, lambda x: jax.nn.softmax(x, -1), k)


def layer_norm(m: int, n: int, k: int) -> Kernel:
    def windows(s, t, _r, _rt):
        return [((s[0], s[1], 0), (t[0], t[1], k)), ((0,), (k,))]

    def compute(x, scale):
        centred = x - x.mean(-1, keepdims=True)
        return centred * lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale

    return _rowwise("layer_norm", ((m, n, k), (k,)), windows, compute, k)


def _rowwise(family: str, inputs, windows, compute, row: int) -> Kernel:
    return Kernel(
        "", family, inputs, inputs[0], windows, compute, fixed_reduction=(row,), whole_rows=True
    )


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


def attention_scores(b: int, t: int, s: int, d: int) -> Kernel:
    def windows(start, tile, _r, _rt):
        return [
            ((start[0], start[1], 0), (tile[0], tile[1], d)),
            ((start[0], 0, 0), (tile[0], s, d)),
        ]

    def compute(query, key):
        return jax.nn.softmax(jnp.einsum("btd,bsd->bts", query, key), -1)

    return Kernel(
        "",
        "attention_scores",
        ((b, t, d), (b, s, d)),
        (b, t, s),
        windows,
        compute,
        fixed_reduction=(s, d),
        whole_rows=True,
    )


def log_sum_exp(m: int, n: int, k: int) -> Kernel:
    def windows(s, t, _r, _rt):
        return [((s[0], s[1], 0), (*t, k))]

    def compute(x):
        return jnp.log(jnp.exp(x).sum(-1))

    return Kernel("", "log_sum_exp", ((m, n, k),), (m, n), windows, compute, fixed_reduction=(k,))


def gated_matmul(m: int, n: int, k: int) -> Kernel:
    def windows(s, t, _r, _rt):
        weights = ((0, s[1]), (k, t[1]))
        return [((s[0], 0), (t[0], k)), weights, weights]

    def compute(x, gate, up):
        return jax.nn.silu(x @ gate) * (x @ up)

    inputs = ((m, k), (k, n), (k, n))
    return Kernel("", "gated_matmul", inputs, (m, n), windows, compute, fixed_reduction=(k,))


def matmul_into_transposed(m: int, n: int, k: int) -> Kernel:
    def windows(s, t, r, rt):
        return [((s[1], r), (t[1], rt)), ((r, s[0]), (rt, t[0]))]

    return Kernel(
        "",
        "matmul_into_transposed",
        ((m, k), (k, n)),
        (n, m),
        windows,
        lambda x, y: (x @ y).T,
        k,
        lambda out, _x, _y: jax.nn.relu(out),
    )


def max_plus(m: int, n: int, k: int) -> Kernel:
    def windows(s, t, _r, _rt):
        return [((s[0], 0), (t[0], k)), ((s[1], 0), (t[1], k))]

    def compute(x, y):
        return (x[:, None, :] + y[None, :, :]).max(-1)

    inputs = ((m, k), (n, k))
    return Kernel("", "max_plus", inputs, (m, n), windows, compute, fixed_reduction=(k,))


def batched_outer(b: int, m: int, n: int) -> Kernel:
    def windows(s, t, _r, _rt):
        return [((s[0], s[1]), (t[0], t[1])), ((s[0], s[2]), (t[0], t[2]))]

    def compute(x, y):
        return jnp.tanh(x[:, :, None] + y[:, None, :])

    return Kernel("", "batched_outer", ((b, m), (b, n)), (b, m, n), windows, compute)


def scale_shift(b: int, side: int, channels: int) -> Kernel:
    def windows(s, t, _r, _rt):
        return [(s, t), ((s[3],), (t[3],)), ((s[3],), (t[3],))]

    def compute(x, scale, shift):
        return jax.nn.relu6(x * scale + shift)

    image = (b, side, side, channels)
    return Kernel("", "scale_shift", (image, (channels,), (channels,)), image, windows, compute)


def channels_first(b: int, side: int, channels: int) -> Kernel:
    def windows(s, t, _r, _rt):
        return [((s[0], s[2], s[3], s[1]), (t[0], t[2], t[3], t[1]))]

    def compute(x):
        return x.transpose(0, 3, 1, 2) * 2.0

    inputs = ((b, side, side, channels),)
    return Kernel("", "channels_first", inputs, (b, channels, side, side), windows, compute)


def stencil(m: int, n: int) -> Kernel:
    def windows(s, t, _r, _rt):
        return [(s, (t[0] + 2, t[1] + 2))]

    def compute(x):
        rows = x.shape[0] - 2
        columns = x.shape[1] - 2
        shifted = [x[i : i + rows, j : j + columns] for i in range(3) for j in range(3)]
        return jnp.tanh(sum(shifted[1:], shifted[0]))

    inputs = ((m + 2, n + 2),)
    return Kernel("", "stencil", inputs, (m, n), windows, compute, fixed_reduction=(3, 3))


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
        height = x.shape[1] - 2
        width = x.shape[2] - 2
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


def pointwise_convolution(b: int, side: int, channels: int, width: int) -> Kernel:
    def windows(s, t, r, rt):
        return [((s[0], s[1], s[2], r), (*t[:3], rt)), ((0, 0, r, s[3]), (1, 1, rt, t[3]))]

    def compute(x, w):
        return lax.conv_general_dilated(x, w, (1, 1), "VALID", dimension_numbers=_NHWC)

    inputs = ((b, side, side, channels), (1, 1, channels, width))
    output = (b, side, side, width)
    return Kernel("", "pointwise_convolution", inputs, output, windows, compute, channels)


def strided_convolution(b: int, side: int, channels: int, width: int) -> Kernel:
    def windows(s, t, _r, _rt):
        piece = (t[0], 2 * t[1] + 1, 2 * t[2] + 1, channels)
        weights = (3, 3, channels, t[3])
        return [((s[0], 2 * s[1], 2 * s[2], 0), piece), ((0, 0, 0, s[3]), weights)]

    def compute(x, w):
        return lax.conv_general_dilated(x, w, (2, 2), "VALID", dimension_numbers=_NHWC)

    inputs = ((b, 2 * side + 1, 2 * side + 1, channels), (3, 3, channels, width))
    output = (b, side, side, width)
    return Kernel(
        "",
        "strided_convolution",
        inputs,
        output,
        windows,
        compute,
        fixed_reduction=(3, 3, channels),
    )


def convolution_1d(b: int, length: int, channels: int, width: int) -> Kernel:
    def windows(s, t, _r, _rt):
        return [((s[0], s[1], 0), (t[0], t[1] + 2, channels)), ((0, 0, s[2]), (3, channels, t[2]))]

    def compute(x, w):
        return lax.conv_general_dilated(
            x, w, (1,), "VALID", dimension_numbers=("NWC", "WIO", "NWC")
        )

    inputs = ((b, length + 2, channels), (3, channels, width))
    output = (b, length, width)
    return Kernel(
        "", "convolution_1d", inputs, output, windows, compute, fixed_reduction=(3, channels)
    )
