"""Small networks, as JAX functions, whose layouts and fusions are measured, and light programs, whose
fusions are.

Every network takes its parameters as arguments, so that no weights enter the module.
Channel order and the orientation of weights vary: where everything is in the compiler's
preferred order already, the default layout always wins and there is nothing to learn.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import chain, zip_longest
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hlorank_training.measuring import light_programs as light
from hlorank_training.measuring.layers import Scope
from hlorank_training.measuring.networks import (
    autoencoder,
    axial_attention,
    cross_attention,
    dense_net,
    gated_recurrent,
    graph_convolution,
    linear_attention,
    mixer,
    mobile_net,
    multi_query_attention,
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
    window_attention,
)

Body = Callable[..., Any]


@dataclass(frozen=True)
class Network:
    """One graph of the zoo: ``body(scope, *inputs)``, and whether a training step wraps it."""

    name: str
    family: str
    body: Body
    inputs: tuple[tuple[int, ...], ...]
    train: bool = False
    reverse: bool = False
    """Whether the dimensions of arguments are reversed, as in a column-major caller."""

    def arguments(self) -> list[Any]:
        """Returns inputs and parameters, the same on every call."""
        random = np.random.default_rng(0)
        shapes = list(self.inputs) + self._parameter_shapes()
        filled = [_fill(random, shape) for shape in shapes]
        return [array.transpose() for array in filled] if self.reverse else filled

    def function(self) -> Callable[..., Any]:
        """Returns the function to lower: the forward pass, or the loss and all its gradients."""
        return self._gradients if self.train else self._forward

    def _parameter_shapes(self) -> list[tuple[int, ...]]:
        scope = Scope()
        inputs = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in self.inputs]
        jax.eval_shape(lambda *values: self.body(scope, *values), *inputs)
        return scope.shapes

    def _forward(self, *arguments):
        if self.reverse:
            arguments = [array.transpose() for array in arguments]
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
    """Returns every graph in the order of measurement: families alternate."""
    f = partial
    nchw = "NCHW"
    chwn = "CHWN"
    n = Network
    return [
        n("plain_nchw", "plain", f(plain_convnet, widths=(16, 32, 64), order=nchw, kernel="OIHW"), _image(nchw, 12, 64)),
        n("transformer_encoder", "transformer", f(transformer, layers=2, heads=4), ((8, 128, 192),)),
        n("unet_nhwc", "unet", f(u_net, width=12, depth=2), _image("NHWC", 12, 64)),
        n("mixer_small", "mixer", f(mixer, layers=2), ((16, 128, 192),)),
        n("residual_nchw", "residual", f(residual_net, widths=(32, 48, 64), order=nchw), _image(nchw, 16, 64)),
        n("perceptron_transposed_train", "perceptron", f(perceptron, widths=(768, 1024, 512), transposed=True), ((256, 512),), train=True),
        n("mobile_nhwc", "mobile", f(mobile_net, widths=(16, 24, 24)), _image("NHWC", 8, 64)),
        n("recommender", "recommender", recommender, ((1024, 64), (1024, 26, 64))),
        n("window_nhwc", "window", f(window_attention, layers=2, heads=4, window=8), ((4, 32, 32, 96),)),
        n("triangle", "triangle", f(triangle_update, layers=2), ((96, 96, 64),)),
        n("transformer_causal_transposed", "transformer", f(transformer, layers=2, heads=4, causal=True, transposed=True, heads_first=False), ((8, 128, 192),)),
        n("autoencoder_nchw", "autoencoder", f(autoencoder, widths=(16, 32), order=nchw), _image(nchw, 16, 64)),
        n("graph_convolution", "graph", f(graph_convolution, widths=(192, 256, 128)), ((1024, 1024), (128, 1024))),
        n("dense_nchw", "dense", f(dense_net, growth=16, layers=3, order=nchw), _image(nchw, 8, 40)),
        n("recurrent", "recurrent", f(recurrent, hidden=256, steps=8), ((8, 192, 192),)),
        n("linear_attention", "linear_attention", f(linear_attention, layers=2, heads=4), ((8, 256, 192),)),
        n("residual_nhwc_reversed", "residual", f(residual_net, widths=(32, 48, 64)), _image("NHWC", 16, 64), reverse=True),
        n("axial", "axial", f(axial_attention, heads=4, layers=1), ((64, 64, 128),)),
        n("mixer_transposed_train", "mixer", f(mixer, layers=1, transposed=True), ((24, 96, 128),), train=True),
        n("mobile_squeeze_nchw", "mobile", f(mobile_net, widths=(16, 24), order=nchw, squeeze=True), _image(nchw, 8, 64)),
        n("vision_nchw", "vision", f(vision_transformer, width=192, layers=2, heads=4, order=nchw), _image(nchw, 12, 64)),
        n("multi_query", "multi_query", f(multi_query_attention, layers=2, heads=4), ((8, 128, 192),)),
        n("plain_nhwc_train", "plain", f(plain_convnet, widths=(12, 24)), _image("NHWC", 8, 48), train=True),
        n("cross_attention", "cross_attention", f(cross_attention, layers=2, heads=4), ((12, 64, 128), (12, 256, 128))),
        n("unet_nchw", "unet", f(u_net, width=12, depth=2, order=nchw), _image(nchw, 12, 64)),
        n("gated_recurrent", "recurrent", f(gated_recurrent, hidden=256, steps=8), ((192, 8, 192),)),
        n("shuffle", "shuffle", f(shuffle_net, width=48, blocks=3), _image("NHWC", 8, 40)),
        n("perceptron_reversed", "perceptron", f(perceptron, widths=(1024, 1024, 512)), ((512, 768),), reverse=True),
        n("transformer_train", "transformer", f(transformer, layers=1, heads=4, heads_first=False), ((8, 96, 128),), train=True),
        n("plain_chwn", "plain", f(plain_convnet, widths=(16, 32), order=chwn), _image(chwn, 16, 48)),
        n("bottleneck_nchw", "residual", f(residual_net, widths=(48, 96), order=nchw, bottleneck=True), _image(nchw, 24, 64)),
        n("recommender_train", "recommender", recommender, ((512, 64), (512, 20, 64)), train=True),
        n("window_nchw_train", "window", f(window_attention, layers=1, heads=4, window=8, order=nchw), ((2, 64, 32, 32),), train=True),
        n("autoencoder_nhwc_train", "autoencoder", f(autoencoder, widths=(12, 24)), _image("NHWC", 8, 48), train=True),
        n("graph_convolution_train", "graph", f(graph_convolution, widths=(128, 192)), ((1024, 1024), (192, 1024)), train=True),
        n("vision_nhwc", "vision", f(vision_transformer, width=192, layers=2, heads=4), _image("NHWC", 12, 64)),
        n("triangle_train", "triangle", f(triangle_update, layers=1), ((80, 80, 48),), train=True),
        n("dense_nhwc", "dense", f(dense_net, growth=16, layers=3), _image("NHWC", 12, 40)),
        n("linear_attention_transposed", "linear_attention", f(linear_attention, layers=2, heads=8, transposed=True), ((8, 192, 192),)),
        n("mobile_nchw_train", "mobile", f(mobile_net, widths=(12, 16), order=nchw), _image(nchw, 8, 32), train=True),
        n("mixer_reversed", "mixer", f(mixer, layers=2), ((12, 128, 192),), reverse=True),
        n("recurrent_train", "recurrent", f(recurrent, hidden=192, steps=5), ((5, 192, 192),), train=True),
        n("residual_nchw_train", "residual", f(residual_net, widths=(24, 32), order=nchw), _image(nchw, 12, 40), train=True),
        n("axial_reversed", "axial", f(axial_attention, heads=8, layers=1), ((48, 48, 128),), reverse=True),
        n("cross_attention_train", "cross_attention", f(cross_attention, layers=1, heads=4), ((12, 48, 128), (12, 192, 128)), train=True),
        n("unet_chwn", "unet", f(u_net, width=12, depth=2, order=chwn), _image(chwn, 16, 48)),
        n("plain_nchw_reversed", "plain", f(plain_convnet, widths=(24, 48), order=nchw), _image(nchw, 12, 48), reverse=True),
        n("perceptron_train", "perceptron", f(perceptron, widths=(768, 1024, 512)), ((384, 512),), train=True),
        n("shuffle_train", "shuffle", f(shuffle_net, width=16, blocks=2), _image("NHWC", 2, 20), train=True),
        n("multi_query_train", "multi_query", f(multi_query_attention, layers=1, heads=4), ((8, 96, 128),), train=True),
        n("autoencoder_nhwc", "autoencoder", f(autoencoder, widths=(16, 32)), _image("NHWC", 16, 64)),
        n("transformer_wide_reversed", "transformer", f(transformer, layers=1, heads=8), ((8, 128, 256),), reverse=True),
        n("graph_convolution_reversed", "graph", f(graph_convolution, widths=(192, 256)), ((1280, 1280), (192, 1280)), reverse=True),
        n("residual_chwn", "residual", f(residual_net, widths=(24, 32), order=chwn), _image(chwn, 16, 48)),
        n("window_reversed", "window", f(window_attention, layers=1, heads=4, window=4), ((4, 32, 32, 128),), reverse=True),
        n("dense_chwn_train", "dense", f(dense_net, growth=8, layers=2, order=chwn), _image(chwn, 8, 32), train=True),
        n("vision_nchw_train", "vision", f(vision_transformer, width=128, layers=1, heads=4, order=nchw), _image(nchw, 8, 64), train=True),
        n("linear_attention_train", "linear_attention", f(linear_attention, layers=1, heads=4), ((8, 128, 128),), train=True),
        n("mobile_chwn", "mobile", f(mobile_net, widths=(16, 24), order=chwn), _image(chwn, 8, 48)),
        n("gated_recurrent_train", "recurrent", f(gated_recurrent, hidden=192, steps=5), ((192, 5, 192),), train=True),
        n("unet_nchw_train", "unet", f(u_net, width=8, depth=2, order=nchw), _image(nchw, 8, 32), train=True),
        n("recommender_reversed", "recommender", recommender, ((768, 64), (768, 20, 64)), reverse=True),
        n("triangle_reversed", "triangle", f(triangle_update, layers=1), ((112, 112, 64),), reverse=True),
        n("autoencoder_chwn", "autoencoder", f(autoencoder, widths=(16, 24), order=chwn), _image(chwn, 16, 48)),
        n("cross_attention_reversed", "cross_attention", f(cross_attention, layers=2, heads=8), ((8, 48, 192), (8, 192, 192)), reverse=True),
        n("shuffle_wide", "shuffle", f(shuffle_net, width=64, blocks=2, groups=8), _image("NHWC", 8, 40)),
    ]  # fmt: skip


def fusion_programs() -> list[Network]:
    """Returns every program in the order of measurement: light ones and networks alternate."""
    pairs = zip_longest(light_programs(), networks())
    return [program for program in chain.from_iterable(pairs) if program is not None]


def light_programs() -> list[Network]:
    """Returns the programs without matrix products; families alternate."""
    f = partial
    n = Network
    return [
        n("adam", "optimizer", light.adam, ((768, 1024), (768, 1024))),
        n("diffusion", "stencil", f(light.diffusion, steps=4), ((512, 512),)),
        n("layer_norm_gate", "norm", f(light.layer_norm_gate, layers=2), ((16, 128, 192),)),
        n("cross_entropy", "loss", light.cross_entropy, ((512, 1000), (512, 1000))),
        n("gaussian_mixture", "mixture", f(light.gaussian_mixture, components=32), ((2048, 16),)),
        n("sharpen", "image", light.sharpen, ((4, 128, 128, 3),)),
        n("attraction", "particles", light.attraction, ((384, 3),)),
        n("black_scholes", "finance", light.black_scholes, ((256, 512), (256, 512))),
        n("rotary", "signal", f(light.rotary, layers=2), ((4, 128, 6, 64),)),
        n("rmsprop", "optimizer", light.rmsprop, ((384, 512), (384, 512))),
        n("diffusion_3d", "stencil", f(light.diffusion, steps=2), ((64, 64, 64),)),
        n("group_norm", "norm", f(light.group_norm, groups=8, layers=2), ((8, 32, 32, 64),)),
        n("focal", "loss", light.focal, ((1024, 256), (1024, 256))),
        n("experts", "mixture", f(light.experts, count=4), ((1024, 256),)),
        n("tone_map", "image", light.tone_map, ((4, 160, 160, 3),)),
        n("lennard_jones", "particles", light.lennard_jones, ((320, 3),)),
        n("random_walks", "finance", light.random_walks, ((32, 4096),)),
        n("spectrum", "signal", f(light.spectrum, size=64, step=32), ((16, 2048),)),
        n("lamb", "optimizer", light.lamb, ((512, 768), (512, 768))),
        n("wave", "stencil", f(light.wave, steps=4), ((384, 512),)),
        n("swish_gate", "norm", f(light.swish_gate, layers=3), ((2048, 384),)),
        n("contrastive", "loss", light.contrastive, ((192, 32), (192, 32))),
        n("kernel_density", "mixture", f(light.kernel_density, points=256), ((1024, 8),)),
        n("edges", "image", light.edges, ((8, 96, 96, 3),)),
        n("lion", "optimizer", light.lion, ((1024, 1024), (1024, 1024))),
        n("gray_scott", "stencil", f(light.gray_scott, steps=3), ((256, 384),)),
        n("softmax_mix", "norm", f(light.softmax_mix, layers=2), ((16, 128, 160),)),
        n("cross_entropy_train", "loss", light.cross_entropy, ((256, 2000), (256, 2000)), train=True),
        n("gaussian_mixture_wide", "mixture", f(light.gaussian_mixture, components=12), ((512, 96),)),
        n("bilateral", "image", light.bilateral, ((4, 128, 128, 3),)),
        n("attraction_small", "particles", light.attraction, ((160, 3),)),
        n("black_scholes_large", "finance", light.black_scholes, ((1024, 1024), (1024, 1024))),
        n("rotary_train", "signal", f(light.rotary, layers=1), ((4, 96, 4, 64),), train=True),
        n("adafactor", "optimizer", light.adafactor, ((768, 768), (768, 768))),
        n("wave_train", "stencil", lambda p, u: light.wave(p, u, 2)[0], ((256, 256),), train=True),
        n("layer_norm_gate_train", "norm", f(light.layer_norm_gate, layers=1), ((1024, 4, 96),), train=True),
        n("focal_train", "loss", light.focal, ((512, 256), (512, 256)), train=True),
        n("experts_train", "mixture", f(light.experts, count=3), ((512, 256),), train=True),
        n("sharpen_train", "image", light.sharpen, ((4, 96, 96, 3),), train=True),
        n("spectrum_train", "signal", f(light.spectrum, size=32, step=16), ((8, 1024),), train=True),
        n("adam_small", "optimizer", light.adam, ((128, 256), (128, 256))),
        n("diffusion_train", "stencil", f(light.diffusion, steps=2), ((256, 320),), train=True),
        n("group_norm_nchw", "norm", f(light.group_norm, groups=4, layers=2, order="NCHW"), ((8, 48, 32, 32),)),
        n("contrastive_train", "loss", light.contrastive, ((128, 24), (128, 24)), train=True),
        n("tone_map_train", "image", light.tone_map, ((2, 128, 128, 3),), train=True),
        n("swish_gate_train", "norm", f(light.swish_gate, layers=2), ((1024, 256),), train=True),
    ]  # fmt: skip
