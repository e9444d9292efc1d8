"""Programs without matrix products: which instructions are fused decides their run time.

Functions ``body(p, *inputs)`` as in ``networks``, where ``p`` returns parameters.
"""

import jax
import jax.numpy as jnp
from jax import lax

from hlorank_training.measuring.layers import layer_norm, norm


def adam(p, weights, gradient):
    """A step with clipping, weight decay and bias correction."""
    first = p(*weights.shape)
    second = p(*weights.shape) ** 2
    length = jnp.sqrt(jnp.sum(gradient**2))
    gradient = gradient * jnp.minimum(1.0, 1.0 / (length + 1e-6))
    first = 0.9 * first + 0.1 * gradient
    second = 0.999 * second + 0.001 * gradient**2
    step = (first / 0.19) / (jnp.sqrt(second / 0.002) + 1e-8) + 0.01 * weights
    return weights - 1e-3 * step, first, second


def rmsprop(p, weights, gradient):
    """A centred step with momentum."""
    square = p(*weights.shape) ** 2
    mean = p(*weights.shape)
    momentum = p(*weights.shape)
    square = 0.9 * square + 0.1 * gradient**2
    mean = 0.9 * mean + 0.1 * gradient
    step = gradient * lax.rsqrt(jnp.maximum(square - mean**2, 0.0) + 1e-6)
    momentum = 0.9 * momentum + 0.01 * step
    return weights - momentum, square, mean, momentum


def lamb(p, weights, gradient):
    """A step of Adam, scaled by the norms of each row."""
    first = p(*weights.shape)
    second = p(*weights.shape) ** 2
    first = 0.9 * first + 0.1 * gradient
    second = 0.999 * second + 0.001 * gradient**2
    step = first / (jnp.sqrt(second) + 1e-6) + 0.01 * weights
    ratio = jnp.sqrt(jnp.sum(weights**2, -1, keepdims=True) + 1e-9)
    ratio = ratio / jnp.sqrt(jnp.sum(step**2, -1, keepdims=True) + 1e-9)
    return weights - 1e-3 * jnp.clip(ratio, 0.1, 10.0) * step, first, second


def lion(p, weights, gradient):
    """A step by the sign of the momentum, and a step's moving average of the weights."""
    momentum = p(*weights.shape)
    average = p(*weights.shape)
    step = jnp.sign(0.9 * momentum + 0.1 * gradient) + 0.1 * weights
    weights = weights - 1e-3 * step
    return weights, 0.99 * momentum + 0.01 * gradient, 0.995 * average + 0.005 * weights


def adafactor(p, weights, gradient):
    """A step whose second moments are an outer product of those of rows and columns."""
    rows = p(weights.shape[0])
    columns = p(weights.shape[1])
    square = gradient**2 + 1e-9
    rows = 0.99 * rows + 0.01 * square.mean(1)
    columns = 0.99 * columns + 0.01 * square.mean(0)
    scale = rows[:, None] * columns[None] / rows.mean()
    step = gradient * lax.rsqrt(scale)
    step = step / jnp.maximum(1.0, jnp.sqrt((step**2).mean()))
    return weights - 1e-2 * step, rows, columns


def _laplacian(u, axes):
    around = sum(jnp.roll(u, shift, axis) for axis in axes for shift in (1, -1))
    return around - 2 * len(axes) * u


def diffusion(p, u, steps):
    """Diffusion with a conductivity, and a reaction, on a grid of any rank."""
    conductivity = p(*u.shape)
    for _ in range(steps):
        flow = conductivity * _laplacian(u, range(u.ndim))
        u = u + 0.1 * (flow + u * (1 - u) * jnp.tanh(u))
    return u


def gray_scott(p, u, steps):
    """Two substances that diffuse and react."""
    v = p(*u.shape)
    for _ in range(steps):
        reaction = u * v * v
        u = u + 0.16 * _laplacian(u, (0, 1)) - reaction + 0.04 * (1 - u)
        v = v + 0.08 * _laplacian(v, (0, 1)) + reaction - 0.1 * v
    return u, v


def wave(p, u, steps):
    """The wave equation with padded borders and a speed."""
    before = p(*u.shape)
    speed = p(*u.shape)
    for _ in range(steps):
        padded = jnp.pad(u, 1)
        around = padded[2:, 1:-1] + padded[:-2, 1:-1] + padded[1:-1, 2:] + padded[1:-1, :-2]
        u, before = 2 * u - before + (0.1 + speed**2) * (around - 4 * u), u
    return u, before


def layer_norm_gate(p, x, layers):
    """Normalizations and gated linear units whose halves are slices."""
    for _ in range(layers):
        y = layer_norm(p, jnp.concatenate([x, jnp.flip(x, 1)], -1))
        left, right = jnp.split(y, 2, -1)
        x = x + left * jax.nn.sigmoid(right)
    return x


def group_norm(p, x, groups, layers, order="NHWC"):
    """Normalizations of groups of channels, with swish."""
    axis = order.index("C")
    for _ in range(layers):
        split = [*x.shape[:axis], groups, x.shape[axis] // groups, *x.shape[axis + 1 :]]
        y = x.reshape(split)
        axes = tuple(n for n in range(1, y.ndim) if n != axis)
        y = (y - y.mean(axes, keepdims=True)) * lax.rsqrt(y.var(axes, keepdims=True) + 1e-5)
        x = x + jax.nn.silu(norm(p, y.reshape(x.shape), order))
    return x


def swish_gate(p, x, layers):
    """Root mean square norms and gates without their products."""
    for _ in range(layers):
        y = x * lax.rsqrt((x**2).mean(-1, keepdims=True) + 1e-6) * p(x.shape[-1])
        x = x + jax.nn.silu(y * p(x.shape[-1])) * (y + p(x.shape[-1]))
    return x


def softmax_mix(p, x, layers):
    """Softmax along rows and along columns, with residuals."""
    for _ in range(layers):
        y = jax.nn.softmax(x * p(x.shape[-1]), -1)
        z = jax.nn.softmax(x, -2)
        x = x + y * z.max(-1, keepdims=True) + jnp.flip(z, -1)
    return x


def cross_entropy(p, logits, scores):
    """Softmax cross entropy with smoothed targets and a penalty of the normalizer."""
    target = jax.nn.softmax(5 * scores + p(logits.shape[-1]), -1)
    target = 0.9 * target + 0.1 / logits.shape[-1]
    normalizer = jax.nn.logsumexp(logits, -1)
    loss = normalizer - jnp.sum(target * logits, -1)
    return loss + 1e-4 * normalizer**2


def focal(p, logits, scores):
    """Focal loss of independent classes, weighted by class."""
    target = (scores > 0).astype(jnp.float32)
    probability = jax.nn.sigmoid(logits + p(logits.shape[-1]))
    right = probability * target + (1 - probability) * (1 - target)
    loss = -((1 - right) ** 2) * jnp.log(right + 1e-7)
    return jnp.sum(loss * p(logits.shape[-1]), -1)


def contrastive(p, left, right):
    """Distances of all pairs and their cross entropy in both directions."""
    left = left * lax.rsqrt(jnp.sum(left**2, -1, keepdims=True) + 1e-6)
    right = right * lax.rsqrt(jnp.sum(right**2, -1, keepdims=True) + 1e-6)
    distance = jnp.sum((left[:, None] - right[None]) ** 2, -1) * p(1)
    forward = jax.nn.logsumexp(-distance, 1) + jnp.diagonal(distance)
    backward = jax.nn.logsumexp(-distance, 0) + jnp.diagonal(distance)
    return forward + backward


def gaussian_mixture(p, x, components):
    """Memberships of points in Gaussians, and the next means and spreads."""
    mean = p(components, x.shape[-1])
    spread = 0.5 + p(components, x.shape[-1]) ** 2
    offset = x[:, None] - mean[None]
    density = -0.5 * jnp.sum(offset**2 / spread[None] ** 2, -1) - jnp.sum(jnp.log(spread), -1)
    weight = jax.nn.softmax(density + jnp.log(p(components)), -1)
    total = weight.sum(0)[:, None]
    mean = jnp.sum(weight[:, :, None] * x[:, None], 0) / total
    spread = jnp.sum(weight[:, :, None] * (x[:, None] - mean[None]) ** 2, 0) / total
    return mean, spread, jax.nn.logsumexp(density, -1)


def experts(p, x, count):
    """Elementwise experts, mixed by gates."""
    gate = jax.nn.softmax(jnp.stack([(x * p(x.shape[-1])).sum(-1) for _ in range(count)], -1), -1)
    mixed = jnp.zeros_like(x)
    for expert in range(count):
        hidden = jax.nn.gelu(x * p(x.shape[-1]) + p(x.shape[-1]))
        mixed = mixed + gate[..., expert, None] * hidden * p(x.shape[-1])
    return x + mixed / (1e-3 + jnp.abs(mixed).max(-1, keepdims=True))


def kernel_density(p, x, points):
    """Densities of two kernels at every point."""
    squares = jnp.sum((x[:, None] - p(points, x.shape[-1])[None]) ** 2, -1)
    gaussian = jnp.exp(-0.5 * squares / 0.3)
    cauchy = 1 / (1 + squares)
    share = gaussian / (gaussian.sum(0, keepdims=True) + 1e-6)
    return jnp.log(gaussian.mean(1) + 1e-9), cauchy.mean(1), share.max(1)


def _blurred(x, axis, weights):
    reach = len(weights) // 2
    sides = [(reach, reach) if n == axis else (0, 0) for n in range(x.ndim)]
    padded = jnp.pad(x, sides, mode="edge")
    size = x.shape[axis]
    parts = [lax.slice_in_dim(padded, n, n + size, axis=axis) for n in range(len(weights))]
    return sum(weight * part for weight, part in zip(weights, parts, strict=True))


def sharpen(p, x):
    """A separable blur, and what it removed added again, per channel."""
    weights = (0.06, 0.24, 0.4, 0.24, 0.06)
    blurred = _blurred(_blurred(x, 1, weights), 2, weights)
    detail = x - blurred
    detail = jnp.sign(detail) * jnp.maximum(jnp.abs(detail) - 0.02, 0)
    return jnp.clip(x + (1 + p(x.shape[-1])) * detail, 0, 1)


def tone_map(p, x):
    """Exposure by mean luminance, a filmic curve, gamma and saturation."""
    light = jnp.abs(x) + 1e-3
    luminance = jnp.sum(light * jnp.array([0.2, 0.7, 0.1]), -1, keepdims=True)
    key = jnp.exp(jnp.log(luminance).mean((1, 2), keepdims=True))
    exposed = light * (0.18 / key) * p(3)
    curve = exposed * (2.5 * exposed + 0.03) / (exposed * (2.4 * exposed + 0.6) + 0.14)
    grey = curve.mean(-1, keepdims=True)
    return jnp.power(jnp.clip(grey + 1.2 * (curve - grey), 1e-4, 1), 1 / 2.2)


def edges(p, x):
    """Sobel gradients, their direction, and a soft threshold."""
    smooth = (0.25, 0.5, 0.25)
    slope = (-0.5, 0.0, 0.5)
    across = _blurred(_blurred(x, 1, smooth), 2, slope)
    down = _blurred(_blurred(x, 2, smooth), 1, slope)
    size = jnp.sqrt(across**2 + down**2 + 1e-9)
    strong = jax.nn.sigmoid((size - size.mean((1, 2), keepdims=True)) * 10 * p(x.shape[-1]))
    return strong * size, jnp.arctan2(down, across)


def bilateral(p, x):
    """A filter whose weights depend on the distance of values."""
    total = x
    weights = jnp.ones_like(x)
    for axis, shift in ((1, 1), (1, -1), (2, 1), (2, -1)):
        other = jnp.roll(x, shift, axis)
        weight = jnp.exp(-((x - other) ** 2) * (1 + p(x.shape[-1])))
        total = total + weight * other
        weights = weights + weight
    return total / weights


def attraction(p, places):
    """Forces between all pairs of bodies, and a step along them."""
    offset = places[:, None] - places[None]
    square = jnp.sum(offset**2, -1) + 0.01
    force = p(places.shape[0])[None] * lax.rsqrt(square) / square
    return places - 1e-3 * jnp.sum(force[..., None] * offset, 1), -jnp.sum(force * square, 1)


def lennard_jones(p, places):
    """Energies and forces of atoms in a box that repeats."""
    offset = places[:, None] - places[None]
    offset = offset - jnp.round(offset)
    square = jnp.sum(offset**2, -1) + 0.05
    sixth = (p(places.shape[0]) ** 2 / square) ** 3
    near = square < 0.5
    energy = jnp.where(near, sixth * sixth - sixth, 0.0)
    slope = jnp.where(near, (2 * sixth * sixth - sixth) / square, 0.0)
    return energy.sum(1), jnp.sum(slope[..., None] * offset, 1)


def black_scholes(p, spot, strike):
    """Prices of options and three of their derivatives."""
    spot = 1 + jnp.abs(spot)
    strike = 1 + jnp.abs(strike)
    years = 0.5 + p(*spot.shape) ** 2
    volatility = 0.2 + p(*spot.shape) ** 2
    deviation = volatility * jnp.sqrt(years)
    upper = (jnp.log(spot / strike) + (0.02 + 0.5 * volatility**2) * years) / deviation
    likely, below = (0.5 * (1 + lax.erf(d * 0.7071)) for d in (upper, upper - deviation))
    density = jnp.exp(-0.5 * upper**2) * 0.3989
    price = spot * likely - strike * jnp.exp(-0.02 * years) * below
    return price, likely, density / (spot * deviation), spot * density * jnp.sqrt(years)


def random_walks(p, noise):
    """Prices along paths [steps, paths], and what options on them pay."""
    paths = jnp.exp(jnp.cumsum(0.01 * noise + p(noise.shape[0], 1) * 1e-3, 0))
    asian = jnp.maximum(paths.mean(0) - 1, 0)
    drop = (1 - paths / jax.lax.cummax(paths, axis=0)).max(0)
    return asian, drop, jnp.where(paths.min(0) > 0.9, jnp.maximum(paths[-1] - 1, 0), 0.0)


def rotary(p, x, layers):
    """Rotary positions of queries [batch, length, heads, width], with norms between them."""
    half = x.shape[-1] // 2
    angle = jnp.arange(x.shape[1])[:, None] / 10000 ** (jnp.arange(half) / half)
    sine = jnp.sin(angle)[None, :, None]
    cosine = jnp.cos(angle)[None, :, None]
    for _ in range(layers):
        left = x[..., :half]
        right = x[..., half:]
        turned = [left * cosine - right * sine, right * cosine + left * sine]
        y = jnp.concatenate(turned, -1)
        x = x + y * lax.rsqrt((y**2).mean(-1, keepdims=True) + 1e-6) * p(x.shape[-1])
    return x


def spectrum(p, x, size, step):
    """Windows of a signal [batch, length], their energy, and a normalized logarithm."""
    count = (x.shape[1] - size) // step
    frames = jnp.stack([x[:, n * step : n * step + size] for n in range(count)], 1)
    frames = (frames - frames.mean(-1, keepdims=True)) * p(size)
    bands = frames.reshape(*frames.shape[:2], -1, 8)
    level = jnp.log((bands**2).sum(-1) + 1e-5)
    return (level - level.mean(1, keepdims=True)) / (level.std(1, keepdims=True) + 1e-3)
