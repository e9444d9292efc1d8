"""The networks of the zoo: functions ``body(p, *inputs)``, where ``p`` returns parameters."""

import jax
import jax.numpy as jnp
from jax import lax

from hlorank_training.measuring.layers import (
    attention,
    conv,
    conv_norm,
    dense,
    feed_forward,
    in_heads,
    layer_norm,
    norm,
    pool,
    spatial_mean,
)


def plain_convnet(p, x, widths, order="NHWC", kernel="HWIO"):
    for width in widths:
        x = jax.nn.relu(conv_norm(p, x, width, order=order, kernel=kernel))
        x = pool(jax.nn.relu(conv(p, x, width, order=order, kernel=kernel)), order)
    return dense(p, spatial_mean(x, order), 10)


def residual_net(p, x, widths, order="NHWC", bottleneck=False):
    x = jax.nn.relu(conv_norm(p, x, widths[0], 5, 2, order))
    for stage, width in enumerate(widths):
        stride = 2 if stage else 1
        shortcut = conv(p, x, width, 1, stride, order=order) if stage else x
        inner, size = (width // 2, 1) if bottleneck else (width, 3)
        y = jax.nn.relu(conv_norm(p, x, inner, size, stride, order))
        y = jax.nn.relu(conv(p, y, inner, 3, order=order)) if bottleneck else y
        y = conv_norm(p, y, width, size, order=order)
        x = jax.nn.relu(y + shortcut)
    return dense(p, spatial_mean(x, order), 100)


def mobile_net(p, x, widths, order="NHWC", squeeze=False):
    x = jax.nn.relu6(conv(p, x, widths[0], 3, 2, order=order))
    for width in widths:
        inner = x.shape[order.index("C")] * 3
        y = jax.nn.relu6(conv_norm(p, x, inner, 1, order=order))
        y = jax.nn.relu6(conv(p, y, inner, 3, groups=inner, order=order))
        if squeeze:
            gate = dense(p, jax.nn.silu(dense(p, spatial_mean(y, order), inner // 4)), inner)
            shape = [
                y.shape[0] if letter == "N" else -1 if letter == "C" else 1 for letter in order
            ]
            y = y * jax.nn.sigmoid(gate).reshape(shape)
        y = conv_norm(p, y, width, 1, order=order)
        x = x + y if x.shape == y.shape else y
    return dense(p, spatial_mean(x, order), 100)


def shuffle_net(p, x, width, blocks, groups=4):
    """Grouped 1x1 convolutions as batched dots, with channel shuffles between them."""
    batch, height, side, _ = x.shape
    x = conv(p, x, width)
    for _ in range(blocks):
        y = x.reshape(batch, height * side, groups, width // groups)
        y = jnp.einsum("bngi,gio->bngo", y, p(groups, width // groups, width // groups))
        y = y.swapaxes(2, 3).reshape(batch, height, side, width)
        x = x + jax.nn.relu(conv(p, y, width, groups=groups))
    return dense(p, spatial_mean(x), 10)


def u_net(p, x, width, depth, order="NHWC"):
    skips = []
    for level in range(depth):
        x = jax.nn.relu(conv(p, x, width * 2**level, order=order))
        skips.append(x)
        x = pool(x, order)
    x = jax.nn.relu(conv(p, x, width * 2**depth, order=order))
    for level in reversed(range(depth)):
        for axis, letter in enumerate(order):
            x = jnp.repeat(x, 2, axis) if letter in "HW" else x
        x = jnp.concatenate(
            [conv(p, x, width * 2**level, order=order), skips[level]], order.index("C")
        )
        x = jax.nn.relu(conv(p, x, width * 2**level, order=order))
    return conv(p, x, 4, 1, order=order)


def transformer(p, x, layers, heads, causal=False, transposed=False, heads_first=True):
    for _ in range(layers):
        x = x + attention(p, layer_norm(p, x), heads, causal, transposed, heads_first)
        x = feed_forward(p, x, 4, transposed)
    return dense(p, layer_norm(p, x), 16, transposed)


def window_attention(p, x, layers, heads, window, order="NHWC"):
    """Attention inside square windows of an image; every other layer shifts them by half."""
    if order == "NCHW":
        x = x.transpose(0, 2, 3, 1)
    batch, height, side, width = x.shape
    rows = height // window
    columns = side // window
    for layer in range(layers):
        shift = window // 2 if layer % 2 else 0
        y = jnp.roll(layer_norm(p, x), (-shift, -shift), (1, 2))
        y = y.reshape(batch, rows, window, columns, window, width).transpose(0, 1, 3, 2, 4, 5)
        y = attention(p, y.reshape(-1, window * window, width), heads)
        y = y.reshape(batch, rows, columns, window, window, width).transpose(0, 1, 3, 2, 4, 5)
        x = x + jnp.roll(y.reshape(batch, height, side, width), (shift, shift), (1, 2))
        x = feed_forward(p, x)
    return dense(p, x.mean((1, 2)), 10)


def linear_attention(p, x, layers, heads, transposed=False):
    """Attention without softmax: it multiplies keys by values first, at a cost linear in length."""
    for _ in range(layers):
        y = layer_norm(p, x)
        query, key, value = (in_heads(p, y, heads, transposed) for _ in range(3))
        query = jax.nn.elu(query) + 1
        key = jax.nn.elu(key) + 1
        summary = jnp.einsum("bshd,bshe->bhde", key, value)
        weight = jnp.einsum("bthd,bhd->bth", query, key.sum(1))
        mixed = jnp.einsum("bthd,bhde->bthe", query, summary) / weight[..., None]
        x = x + dense(p, mixed.reshape(x.shape), x.shape[-1], transposed)
        x = feed_forward(p, x)
    return dense(p, x, 16)


def multi_query_attention(p, x, layers, heads):
    """All heads share one key and one value; the dense layer is gated."""
    width = x.shape[-1]
    for _ in range(layers):
        y = layer_norm(p, x)
        query = in_heads(p, y, heads)
        key = dense(p, y, width // heads)
        value = dense(p, y, width // heads)
        weights = jax.nn.softmax(jnp.einsum("bthd,bsd->bhts", query, key), -1)
        mixed = jnp.einsum("bhts,bsd->bthd", weights, value)
        x = x + dense(p, mixed.reshape(x.shape), width)
        y = layer_norm(p, x)
        x = x + dense(p, jax.nn.silu(dense(p, y, 2 * width)) * dense(p, y, 2 * width), width)
    return dense(p, x, 16)


def cross_attention(p, x, memory, layers, heads):
    """Queries [batch, t, width] read a longer memory [batch, s, width], as Perceivers do."""
    width = x.shape[-1]
    for _ in range(layers):
        query = in_heads(p, layer_norm(p, x), heads)
        key, value = (in_heads(p, memory, heads) for _ in range(2))
        weights = jax.nn.softmax(jnp.einsum("bthd,bshd->bhts", query, key), -1)
        mixed = jnp.einsum("bhts,bshd->bthd", weights, value)
        x = x + dense(p, mixed.reshape(x.shape), width)
        x = feed_forward(p, x)
    return dense(p, x, 16)


def dense_net(p, x, growth, layers, order="NHWC"):
    """Every layer reads the outputs of all before it."""
    x = conv(p, x, 2 * growth, order=order)
    for _ in range(layers):
        y = jax.nn.relu(conv(p, jax.nn.relu(norm(p, x, order)), 2 * growth, 1, order=order))
        x = jnp.concatenate([x, conv(p, y, growth, order=order)], order.index("C"))
    return dense(p, spatial_mean(pool(x, order), order), 10)


def vision_transformer(p, x, width, layers, heads, patch=8, order="NHWC"):
    x = conv(p, x, width, patch, patch, order=order)
    x = x.reshape(x.shape[0], width, -1).swapaxes(1, 2) if order == "NCHW" else x
    x = x.reshape(x.shape[0], -1, width)
    return transformer(p, x + p(x.shape[1], width), layers, heads).mean(1)


def mixer(p, x, layers, transposed=False):
    """Tokens [batch, length, width]; mixes along the length, then along the width."""
    for _ in range(layers):
        y = layer_norm(p, x).swapaxes(1, 2)
        y = dense(p, jax.nn.gelu(dense(p, y, 2 * y.shape[-1], transposed)), y.shape[-1], transposed)
        x = x + y.swapaxes(1, 2)
        x = feed_forward(p, x)
    return dense(p, x.mean(1), 10)


def rectified(p, x, widths, transposed=False):
    for width in widths:
        x = jax.nn.relu(dense(p, x, width, transposed))
    return x


def perceptron(p, x, widths, transposed=False):
    return dense(p, rectified(p, x, widths, transposed), 10, transposed)


def recommender(p, dense_features, tables, width=64):
    """Dense features [batch, d] and embeddings [batch, fields, width], crossed pairwise."""
    x = rectified(p, dense_features, (256, width))
    stacked = jnp.concatenate([x[:, None, :], tables], 1)
    crossed = jnp.einsum("bie,bje->bij", stacked, stacked)
    x = jnp.concatenate([x, crossed.reshape(x.shape[0], -1)], 1)
    return dense(p, rectified(p, x, (512, 256)), 1)


def recurrent(p, x, hidden, steps):
    """An LSTM unrolled over time-major input [steps, batch, width]."""
    projected = x.reshape(-1, x.shape[-1]) @ p(x.shape[-1], 4 * hidden)
    projected = projected.reshape(steps, -1, 4 * hidden)
    state = cell = jnp.zeros((x.shape[1], hidden))
    recurrent_weights = p(4 * hidden, hidden)
    bias = p(4 * hidden)
    for step in range(steps):
        gates = projected[step] + jnp.einsum("bh,oh->bo", state, recurrent_weights) + bias
        i, f, g, o = jnp.split(gates, 4, -1)
        cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
        state = jax.nn.sigmoid(o) * jnp.tanh(cell)
    return dense(p, state, 16)


def gated_recurrent(p, x, hidden, steps):
    """A GRU unrolled over batch-major input [batch, steps, width]."""
    state = jnp.zeros((x.shape[0], hidden))
    inputs = p(x.shape[-1], 3 * hidden)
    recurrent_weights = p(hidden, 3 * hidden)
    projected = jnp.einsum("btw,wh->bth", x, inputs)
    outputs = []
    for step in range(steps):
        update, reset, new = jnp.split(state @ recurrent_weights, 3, -1)
        from_update, from_reset, from_new = jnp.split(projected[:, step], 3, -1)
        keep = jax.nn.sigmoid(update + from_update)
        fresh = jnp.tanh(from_new + jax.nn.sigmoid(reset + from_reset) * new)
        state = keep * state + (1 - keep) * fresh
        outputs.append(state)
    return dense(p, jnp.stack(outputs, 1), 16)


def graph_convolution(p, adjacency, x, widths):
    """Node features first [width, nodes], so that every product reads a transposed operand."""
    for width in widths:
        mixed = jnp.einsum("fn,mn->fm", x, adjacency)
        x = jax.nn.relu(jnp.einsum("fm,fo->om", mixed, p(x.shape[0], width)))
    return x.sum(1)


def axial_attention(p, x, heads, layers):
    """Attention along rows, then along columns, of a grid [rows, columns, width]."""
    for _ in range(layers):
        x = x + attention(p, layer_norm(p, x), heads)
        x = (x.swapaxes(0, 1) + attention(p, layer_norm(p, x.swapaxes(0, 1)), heads)).swapaxes(0, 1)
    return dense(p, x, 8)


def triangle_update(p, x, layers):
    """The multiplicative pair update of protein models on pairs [n, n, width]."""
    for _ in range(layers):
        y = layer_norm(p, x)
        left = dense(p, y, x.shape[-1])
        right = dense(p, y, x.shape[-1])
        mixed = jnp.einsum("ikc,jkc->ijc", left, right)
        x = x + dense(p, layer_norm(p, mixed), x.shape[-1]) * jax.nn.sigmoid(
            dense(p, y, x.shape[-1])
        )
    return dense(p, x, 8)


def autoencoder(p, x, widths, order="NHWC"):
    for width in widths:
        x = jax.nn.relu(conv(p, x, width, 3, 2, order=order))
    for width in reversed(widths):
        weights = p(3, 3, x.shape[order.index("C")], width)
        x = jax.nn.relu(
            lax.conv_transpose(x, weights, (2, 2), "SAME", dimension_numbers=(order, "HWIO", order))
        )
    return conv(p, x, 3, order=order)
