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
from hlorank_training.measuring import networks as net
from hlorank_training.measuring.layers import Scope

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


def _network(name: str, family: str, body: Body, *inputs: tuple[int, ...], **sizes: Any) -> Network:
    """Returns a network whose name says whether it is a training step, or reversed."""
    how = {"train": "train" in name.split("_"), "reverse": "reversed" in name.split("_")}
    return Network(name, family, partial(body, **sizes), inputs, **how)


def _image(
    name: str, family: str, body: Body, batch: int, side: int, channels: int = 3, **sizes: Any
) -> Network:
    """Returns a network of square images, whose name says their order unless it is NHWC."""
    order = next((order for order in ("NCHW", "CHWN") if order.lower() in name), "NHWC")
    extents = {"N": batch, "H": side, "W": side, "C": channels}
    shape = tuple(extents[letter] for letter in order)
    return _network(name, family, body, shape, order=order, **sizes)


def networks() -> list[Network]:
    """Returns every graph in the order of measurement: families alternate."""
    return [
        _image("plain_nchw", "plain", net.plain_convnet, 12, 64, widths=(16, 32, 64), kernel="OIHW"),
        _network("transformer_encoder", "transformer", net.transformer, (8, 128, 192), layers=2, heads=4),
        _image("unet_nhwc", "unet", net.u_net, 12, 64, width=12, depth=2),
        _network("mixer_small", "mixer", net.mixer, (16, 128, 192), layers=2),
        _image("residual_nchw", "residual", net.residual_net, 16, 64, widths=(32, 48, 64)),
        _network("perceptron_transposed_train", "perceptron", net.perceptron, (256, 512), widths=(768, 1024, 512), transposed=True),
        _image("mobile_nhwc", "mobile", net.mobile_net, 8, 64, widths=(16, 24, 24)),
        _network("recommender", "recommender", net.recommender, (1024, 64), (1024, 26, 64)),
        _image("window_nhwc", "window", net.window_attention, 4, 32, channels=96, layers=2, heads=4, window=8),
        _network("triangle", "triangle", net.triangle_update, (96, 96, 64), layers=2),
        _network("transformer_causal_transposed", "transformer", net.transformer, (8, 128, 192), layers=2, heads=4, causal=True, transposed=True, heads_first=False),
        _image("autoencoder_nchw", "autoencoder", net.autoencoder, 16, 64, widths=(16, 32)),
        _network("graph_convolution", "graph", net.graph_convolution, (1024, 1024), (128, 1024), widths=(192, 256, 128)),
        _image("dense_nchw", "dense", net.dense_net, 8, 40, growth=16, layers=3),
        _network("recurrent", "recurrent", net.recurrent, (8, 192, 192), hidden=256, steps=8),
        _network("linear_attention", "linear_attention", net.linear_attention, (8, 256, 192), layers=2, heads=4),
        _image("residual_nhwc_reversed", "residual", net.residual_net, 16, 64, widths=(32, 48, 64)),
        _network("axial", "axial", net.axial_attention, (64, 64, 128), heads=4, layers=1),
        _network("mixer_transposed_train", "mixer", net.mixer, (24, 96, 128), layers=1, transposed=True),
        _image("mobile_squeeze_nchw", "mobile", net.mobile_net, 8, 64, widths=(16, 24), squeeze=True),
        _image("vision_nchw", "vision", net.vision_transformer, 12, 64, width=192, layers=2, heads=4),
        _network("multi_query", "multi_query", net.multi_query_attention, (8, 128, 192), layers=2, heads=4),
        _image("plain_nhwc_train", "plain", net.plain_convnet, 8, 48, widths=(12, 24)),
        _network("cross_attention", "cross_attention", net.cross_attention, (12, 64, 128), (12, 256, 128), layers=2, heads=4),
        _image("unet_nchw", "unet", net.u_net, 12, 64, width=12, depth=2),
        _network("gated_recurrent", "recurrent", net.gated_recurrent, (192, 8, 192), hidden=256, steps=8),
        _network("shuffle", "shuffle", net.shuffle_net, (8, 40, 40, 3), width=48, blocks=3),
        _network("perceptron_reversed", "perceptron", net.perceptron, (512, 768), widths=(1024, 1024, 512)),
        _network("transformer_train", "transformer", net.transformer, (8, 96, 128), layers=1, heads=4, heads_first=False),
        _image("plain_chwn", "plain", net.plain_convnet, 16, 48, widths=(16, 32)),
        _image("bottleneck_nchw", "residual", net.residual_net, 24, 64, widths=(48, 96), bottleneck=True),
        _network("recommender_train", "recommender", net.recommender, (512, 64), (512, 20, 64)),
        _image("window_nchw_train", "window", net.window_attention, 2, 32, channels=64, layers=1, heads=4, window=8),
        _image("autoencoder_nhwc_train", "autoencoder", net.autoencoder, 8, 48, widths=(12, 24)),
        _network("graph_convolution_train", "graph", net.graph_convolution, (1024, 1024), (192, 1024), widths=(128, 192)),
        _image("vision_nhwc", "vision", net.vision_transformer, 12, 64, width=192, layers=2, heads=4),
        _network("triangle_train", "triangle", net.triangle_update, (80, 80, 48), layers=1),
        _image("dense_nhwc", "dense", net.dense_net, 12, 40, growth=16, layers=3),
        _network("linear_attention_transposed", "linear_attention", net.linear_attention, (8, 192, 192), layers=2, heads=8, transposed=True),
        _image("mobile_nchw_train", "mobile", net.mobile_net, 8, 32, widths=(12, 16)),
        _network("mixer_reversed", "mixer", net.mixer, (12, 128, 192), layers=2),
        _network("recurrent_train", "recurrent", net.recurrent, (5, 192, 192), hidden=192, steps=5),
        _image("residual_nchw_train", "residual", net.residual_net, 12, 40, widths=(24, 32)),
        _network("axial_reversed", "axial", net.axial_attention, (48, 48, 128), heads=8, layers=1),
        _network("cross_attention_train", "cross_attention", net.cross_attention, (12, 48, 128), (12, 192, 128), layers=1, heads=4),
        _image("unet_chwn", "unet", net.u_net, 16, 48, width=12, depth=2),
        _image("plain_nchw_reversed", "plain", net.plain_convnet, 12, 48, widths=(24, 48)),
        _network("perceptron_train", "perceptron", net.perceptron, (384, 512), widths=(768, 1024, 512)),
        _network("shuffle_train", "shuffle", net.shuffle_net, (2, 20, 20, 3), width=16, blocks=2),
        _network("multi_query_train", "multi_query", net.multi_query_attention, (8, 96, 128), layers=1, heads=4),
        _image("autoencoder_nhwc", "autoencoder", net.autoencoder, 16, 64, widths=(16, 32)),
        _network("transformer_wide_reversed", "transformer", net.transformer, (8, 128, 256), layers=1, heads=8),
        _network("graph_convolution_reversed", "graph", net.graph_convolution, (1280, 1280), (192, 1280), widths=(192, 256)),
        _image("residual_chwn", "residual", net.residual_net, 16, 48, widths=(24, 32)),
        _image("window_reversed", "window", net.window_attention, 4, 32, channels=128, layers=1, heads=4, window=4),
        _image("dense_chwn_train", "dense", net.dense_net, 8, 32, growth=8, layers=2),
        _image("vision_nchw_train", "vision", net.vision_transformer, 8, 64, width=128, layers=1, heads=4),
        _network("linear_attention_train", "linear_attention", net.linear_attention, (8, 128, 128), layers=1, heads=4),
        _image("mobile_chwn", "mobile", net.mobile_net, 8, 48, widths=(16, 24)),
        _network("gated_recurrent_train", "recurrent", net.gated_recurrent, (192, 5, 192), hidden=192, steps=5),
        _image("unet_nchw_train", "unet", net.u_net, 8, 32, width=8, depth=2),
        _network("recommender_reversed", "recommender", net.recommender, (768, 64), (768, 20, 64)),
        _network("triangle_reversed", "triangle", net.triangle_update, (112, 112, 64), layers=1),
        _image("autoencoder_chwn", "autoencoder", net.autoencoder, 16, 48, widths=(16, 24)),
        _network("cross_attention_reversed", "cross_attention", net.cross_attention, (8, 48, 192), (8, 192, 192), layers=2, heads=8),
        _network("shuffle_wide", "shuffle", net.shuffle_net, (8, 40, 40, 3), width=64, blocks=2, groups=8),
    ]  # fmt: skip


def fusion_programs() -> list[Network]:
    """Returns every program in the order of measurement: light ones and networks alternate."""
    pairs = zip_longest(light_programs(), networks())
    return [program for program in chain.from_iterable(pairs) if program is not None]


def light_programs() -> list[Network]:
    """Returns the programs without matrix products; families alternate."""
    return [
        _network("adam", "optimizer", light.adam, (768, 1024), (768, 1024)),
        _network("diffusion", "stencil", light.diffusion, (512, 512), steps=4),
        _network("layer_norm_gate", "norm", light.layer_norm_gate, (16, 128, 192), layers=2),
        _network("cross_entropy", "loss", light.cross_entropy, (512, 1000), (512, 1000)),
        _network("gaussian_mixture", "mixture", light.gaussian_mixture, (2048, 16), components=32),
        _network("sharpen", "image", light.sharpen, (4, 128, 128, 3)),
        _network("attraction", "particles", light.attraction, (384, 3)),
        _network("black_scholes", "finance", light.black_scholes, (256, 512), (256, 512)),
        _network("rotary", "signal", light.rotary, (4, 128, 6, 64), layers=2),
        _network("rmsprop", "optimizer", light.rmsprop, (384, 512), (384, 512)),
        _network("diffusion_3d", "stencil", light.diffusion, (64, 64, 64), steps=2),
        _image("group_norm", "norm", light.group_norm, 8, 32, channels=64, groups=8, layers=2),
        _network("focal", "loss", light.focal, (1024, 256), (1024, 256)),
        _network("experts", "mixture", light.experts, (1024, 256), count=4),
        _network("tone_map", "image", light.tone_map, (4, 160, 160, 3)),
        _network("lennard_jones", "particles", light.lennard_jones, (320, 3)),
        _network("random_walks", "finance", light.random_walks, (32, 4096)),
        _network("spectrum", "signal", light.spectrum, (16, 2048), size=64, step=32),
        _network("lamb", "optimizer", light.lamb, (512, 768), (512, 768)),
        _network("wave", "stencil", light.wave, (384, 512), steps=4),
        _network("swish_gate", "norm", light.swish_gate, (2048, 384), layers=3),
        _network("contrastive", "loss", light.contrastive, (192, 32), (192, 32)),
        _network("kernel_density", "mixture", light.kernel_density, (1024, 8), points=256),
        _network("edges", "image", light.edges, (8, 96, 96, 3)),
        _network("lion", "optimizer", light.lion, (1024, 1024), (1024, 1024)),
        _network("gray_scott", "stencil", light.gray_scott, (256, 384), steps=3),
        _network("softmax_mix", "norm", light.softmax_mix, (16, 128, 160), layers=2),
        _network("cross_entropy_train", "loss", light.cross_entropy, (256, 2000), (256, 2000)),
        _network("gaussian_mixture_wide", "mixture", light.gaussian_mixture, (512, 96), components=12),
        _network("bilateral", "image", light.bilateral, (4, 128, 128, 3)),
        _network("attraction_small", "particles", light.attraction, (160, 3)),
        _network("black_scholes_large", "finance", light.black_scholes, (1024, 1024), (1024, 1024)),
        _network("rotary_train", "signal", light.rotary, (4, 96, 4, 64), layers=1),
        _network("adafactor", "optimizer", light.adafactor, (768, 768), (768, 768)),
        _network("wave_train", "stencil", lambda p, u: light.wave(p, u, 2)[0], (256, 256)),
        _network("layer_norm_gate_train", "norm", light.layer_norm_gate, (1024, 4, 96), layers=1),
        _network("focal_train", "loss", light.focal, (512, 256), (512, 256)),
        _network("experts_train", "mixture", light.experts, (512, 256), count=3),
        _network("sharpen_train", "image", light.sharpen, (4, 96, 96, 3)),
        _network("spectrum_train", "signal", light.spectrum, (8, 1024), size=32, step=16),
        _network("adam_small", "optimizer", light.adam, (128, 256), (128, 256)),
        _network("diffusion_train", "stencil", light.diffusion, (256, 320), steps=2),
        _image("group_norm_nchw", "norm", light.group_norm, 8, 32, channels=48, groups=4, layers=2),
        _network("contrastive_train", "loss", light.contrastive, (128, 24), (128, 24)),
        _network("tone_map_train", "image", light.tone_map, (2, 128, 128, 3)),
        _network("swish_gate_train", "norm", light.swish_gate, (1024, 256), layers=2),
    ]  # fmt: skip
