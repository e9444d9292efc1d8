"""The programs whose fusion is measured: light programs, and the networks between them."""

from functools import partial
from itertools import chain, zip_longest

from hlorank_training.measuring import light_programs as light
from hlorank_training.measuring.zoo import Network, networks


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
