"""Small networks, as JAX functions, whose layouts are measured.

Every network takes its parameters as arguments, so that no weights enter the module.
Channel order and the orientation of weights vary: where everything is in the compiler's
favourite order already, the default layout always wins and there is nothing to learn.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .architectures import (
    autoencoder,
    axial_attention,
    graph_convolution,
    mixer,
    mobile_net,
    perceptron,
    plain_convnet,
    recommender,
    recurrent,
    residual_net,
    shuffle_net,
    transformer,
    triangle_update,
    u_net,
    vision_transformer,
)
from .layers import Scope

Body = Callable[..., Any]


@dataclass(frozen=True)
class Network:
    """One graph of the zoo: ``body(scope, *inputs)``, and whether a training step wraps it."""

    name: str
    family: str
    body: Body
    inputs: tuple[tuple[int, ...], ...]
    train: bool = False

    def arguments(self) -> list[Any]:
        """Concrete inputs and parameters, the same on every call."""
        random = np.random.default_rng(0)
        shapes = list(self.inputs) + self._parameter_shapes()
        return [_fill(random, shape) for shape in shapes]

    def function(self) -> Callable[..., Any]:
        """The function to lower: the forward pass, or the loss and all its gradients."""
        return self._gradients if self.train else self._forward

    def _parameter_shapes(self) -> list[tuple[int, ...]]:
        scope = Scope()
        inputs = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in self.inputs]
        jax.eval_shape(lambda *values: self.body(scope, *values), *inputs)
        return scope.shapes

    def _forward(self, *arguments):
        count = len(self.inputs)
        return self.body(Scope(list(arguments[count:])), *arguments[:count])

    def _gradients(self, *arguments):
        count = len(self.inputs)

        def loss(parameters):
            return jnp.mean(self._forward(*arguments[:count], *parameters) ** 2)

        return jax.value_and_grad(loss)(list(arguments[count:]))


def _fill(random: np.random.Generator, shape: tuple[int, ...]):
    values = random.standard_normal(shape) * 0.1
    return jnp.asarray(np.abs(values) + 0.5 if len(shape) == 1 else values, jnp.float32)


def _image(order: str, batch: int, side: int, channels: int = 3) -> tuple[tuple[int, ...], ...]:
    sizes = {"N": batch, "H": side, "W": side, "C": channels}
    return (tuple(sizes[letter] for letter in order),)


def networks() -> list[Network]:
    """Every graph, in the order in which it is measured: families alternate."""
    f, nchw, chwn = partial, "NCHW", "CHWN"
    n = Network
    tokens = ((6, 64, 128),)
    return [
        n("plain_nchw", "plain", f(plain_convnet, widths=(16, 32, 64), order=nchw, kernel="OIHW"), _image(nchw, 5, 64)),
        n("transformer_encoder", "transformer", f(transformer, layers=2, heads=4), tokens),
        n("unet_nhwc", "unet", f(u_net, width=12, depth=2), _image("NHWC", 5, 48)),
        n("mixer_small", "mixer", f(mixer, layers=2), ((10, 96, 128),)),
        n("residual_nchw", "residual", f(residual_net, widths=(32, 48, 64), order=nchw), _image(nchw, 5, 64)),
        n("perceptron_transposed_train", "perceptron", f(perceptron, widths=(384, 512, 256), transposed=True), ((96, 256),), True),
        n("mobile_nhwc", "mobile", f(mobile_net, widths=(16, 24, 24)), _image("NHWC", 2, 64)),
        n("recommender", "recommender", recommender, ((384, 32), (384, 20, 64))),
        n("plain_nhwc_train", "plain", f(plain_convnet, widths=(12, 24)), _image("NHWC", 5, 40), True),
        n("triangle", "triangle", f(triangle_update, layers=2), ((72, 72, 48),)),
        n("transformer_causal_transposed", "transformer", f(transformer, layers=2, heads=4, causal=True, transposed=True, heads_first=False), ((8, 96, 96),)),
        n("autoencoder_nchw", "autoencoder", f(autoencoder, widths=(16, 32), order=nchw), _image(nchw, 5, 64)),
        n("graph_convolution", "graph", f(graph_convolution, widths=(128, 192, 96)), ((640, 640), (96, 640))),
        n("unet_nchw", "unet", f(u_net, width=12, depth=2, order=nchw), _image(nchw, 5, 48)),
        n("shuffle", "shuffle", f(shuffle_net, width=32, blocks=3), _image("NHWC", 5, 32)),
        n("recurrent", "recurrent", f(recurrent, hidden=192, steps=8), ((8, 64, 128),)),
        n("residual_nhwc", "residual", f(residual_net, widths=(32, 48, 64)), _image("NHWC", 5, 64)),
        n("axial", "axial", f(axial_attention, heads=4, layers=1), ((32, 40, 96),)),
        n("mixer_transposed_train", "mixer", f(mixer, layers=1, transposed=True), ((12, 64, 96),), True),
        n("mobile_squeeze_nchw", "mobile", f(mobile_net, widths=(16, 24), order=nchw, squeeze=True), _image(nchw, 5, 48)),
        n("vision_nchw", "vision", f(vision_transformer, width=96, layers=1, heads=4, order=nchw), _image(nchw, 5, 64)),
        n("transformer_train", "transformer", f(transformer, layers=1, heads=4, heads_first=False), ((8, 64, 96),), True),
        n("plain_chwn", "plain", f(plain_convnet, widths=(16, 32), order=chwn), _image(chwn, 8, 40)),
        n("bottleneck_nchw", "residual", f(residual_net, widths=(48, 96), order=nchw, bottleneck=True), _image(nchw, 5, 64)),
        n("unet_chwn", "unet", f(u_net, width=8, depth=2, order=chwn), _image(chwn, 8, 32)),
        n("perceptron_wide", "perceptron", f(perceptron, widths=(512, 768, 512)), ((256, 384),)),
        n("autoencoder_nhwc_train", "autoencoder", f(autoencoder, widths=(12, 24)), _image("NHWC", 5, 40), True),
        n("recurrent_train", "recurrent", f(recurrent, hidden=96, steps=4), ((4, 96, 96),), True),
        n("vision_nhwc", "vision", f(vision_transformer, width=128, layers=2, heads=4), _image("NHWC", 5, 64)),
        n("triangle_train", "triangle", f(triangle_update, layers=1), ((64, 64, 32),), True),
        n("graph_convolution_train", "graph", f(graph_convolution, widths=(96, 128)), ((512, 512), (96, 512)), True),
        n("shuffle_train", "shuffle", f(shuffle_net, width=16, blocks=2), _image("NHWC", 1, 16), True),
        n("mobile_nchw_train", "mobile", f(mobile_net, widths=(12, 16), order=nchw), _image(nchw, 5, 32), True),
        n("residual_nchw_train", "residual", f(residual_net, widths=(24, 32), order=nchw), _image(nchw, 5, 40), True),
        n("perceptron_train", "perceptron", f(perceptron, widths=(384, 512, 256)), ((192, 256),), True),
        n("autoencoder_nhwc", "autoencoder", f(autoencoder, widths=(16, 32)), _image("NHWC", 5, 64)),
        n("residual_chwn", "residual", f(residual_net, widths=(24, 32), order=chwn), _image(chwn, 8, 40)),
        n("transformer_wide", "transformer", f(transformer, layers=1, heads=8, transposed=True), ((4, 96, 192),)),
        n("recommender_train", "recommender", recommender, ((192, 32), (192, 12, 64)), True),
        n("mobile_chwn", "mobile", f(mobile_net, widths=(12, 16), order=chwn), _image(chwn, 4, 40)),
        n("plain_nchw_train", "plain", f(plain_convnet, widths=(12, 24), order=nchw, kernel="OIHW"), _image(nchw, 4, 40), True),
        n("axial_wide", "axial", f(axial_attention, heads=8, layers=1), ((24, 24, 128),)),
    ]  # fmt: skip
