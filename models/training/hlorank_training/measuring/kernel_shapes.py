"""The kernels to measure: every family at several shapes."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from zlib import crc32

import numpy as np

from hlorank_training.measuring import kernels
from hlorank_training.measuring.kernel import Kernel

# fmt: off
_LENGTHS = (48, 64, 96, 120, 128, 144, 160, 192, 240, 256, 288, 320, 384, 480, 512, 576, 640, 768, 1024)
# fmt: on
_BATCHES = (2, 4, 6, 8)
_SIDES = (16, 20, 24, 28, 32, 40, 48, 56)
_WIDTHS = (16, 24, 32, 48, 64, 96, 128)


@dataclass(frozen=True)
class _Family:
    make: Callable[..., Kernel]
    choices: tuple[tuple[int, ...], ...]
    """Lengths to choose from, one tuple per argument."""
    work: tuple[int, int]
    """Minimum and maximum product of the arguments, so that a run takes a few milliseconds."""


_FAMILIES = (
    _Family(kernels.matmul, (_LENGTHS, _LENGTHS, _LENGTHS), (10_000_000, 60_000_000)),
    _Family(kernels.softmax, (_BATCHES, _LENGTHS, _LENGTHS), (200_000, 1_000_000)),
    _Family(kernels.convolution, (_BATCHES, _SIDES, _WIDTHS, _WIDTHS), (60_000, 400_000)),
    _Family(kernels.elementwise_reduce, (_WIDTHS, _LENGTHS, _LENGTHS), (600_000, 3_000_000)),
    _Family(kernels.transpose, (_WIDTHS, _WIDTHS, _LENGTHS), (200_000, 1_000_000)),
    _Family(kernels.gated_matmul, (_LENGTHS, _LENGTHS, _LENGTHS[:9]), (8_000_000, 40_000_000)),
    _Family(kernels.stencil, (_LENGTHS, _LENGTHS), (150_000, 800_000)),
    _Family(kernels.matmul_bias_gelu, (_LENGTHS, _LENGTHS, _LENGTHS), (10_000_000, 60_000_000)),
    _Family(kernels.layer_norm, (_BATCHES, _LENGTHS, _LENGTHS), (300_000, 1_500_000)),
    _Family(kernels.outer_product, (_LENGTHS, _LENGTHS), (150_000, 800_000)),
    _Family(kernels.pointwise_convolution, (_BATCHES, _SIDES, _WIDTHS, _WIDTHS), (200_000, 1_500_000)),
    _Family(kernels.batched_matmul, (_BATCHES, _LENGTHS, _LENGTHS, _LENGTHS), (10_000_000, 60_000_000)),
    _Family(kernels.max_pool, (_BATCHES, _SIDES, _WIDTHS), (2_500, 15_000)),
    _Family(kernels.max_plus, (_LENGTHS, _LENGTHS, _WIDTHS), (2_000_000, 10_000_000)),
    _Family(kernels.matmul_transposed, (_LENGTHS, _LENGTHS, _LENGTHS), (10_000_000, 60_000_000)),
    _Family(kernels.column_reduce, (_WIDTHS, _LENGTHS, _LENGTHS), (600_000, 4_000_000)),
    _Family(kernels.channels_first, (_BATCHES, _SIDES, _WIDTHS), (5_000, 25_000)),
    _Family(kernels.attention_scores, (_BATCHES, _LENGTHS[:12], _LENGTHS[:9], (32, 48, 64, 96)), (3_000_000, 20_000_000)),
    _Family(kernels.elementwise_chain, (_LENGTHS, _LENGTHS), (150_000, 800_000)),
    _Family(kernels.strided_convolution, (_BATCHES, _SIDES, _WIDTHS, _WIDTHS), (60_000, 400_000)),
    _Family(kernels.depthwise_convolution, (_BATCHES, _SIDES, _WIDTHS), (4_000, 20_000)),
    _Family(kernels.log_sum_exp, (_WIDTHS, _LENGTHS, _LENGTHS), (300_000, 2_000_000)),
    _Family(kernels.pairwise_distance, (_LENGTHS, _LENGTHS, _WIDTHS), (2_000_000, 10_000_000)),
    _Family(kernels.batched_outer, (_BATCHES, _LENGTHS, _LENGTHS), (150_000, 800_000)),
    _Family(kernels.convolution_1d, (_BATCHES, _LENGTHS, _WIDTHS, _WIDTHS), (1_500_000, 12_000_000)),
    _Family(kernels.transposed_add, (_LENGTHS, _LENGTHS), (150_000, 800_000)),
    _Family(kernels.scale_shift, (_BATCHES, _SIDES, _WIDTHS), (5_000, 25_000)),
    _Family(kernels.matmul_into_transposed, (_LENGTHS, _LENGTHS, _LENGTHS), (10_000_000, 60_000_000)),
)  # fmt: skip

SHAPES = 22
"""Kernels of each family."""


def measured_kernels(shapes: int = SHAPES) -> list[Kernel]:
    """Returns ``shapes`` kernels of every family.

    Families alternate, so a collection that is stopped early has equally many of each.
    """
    drawn = [_draw(family, shapes) for family in _FAMILIES]
    return [kernel for row in zip(*drawn, strict=True) for kernel in row]


def _draw(family: _Family, count: int) -> list[Kernel]:
    random = np.random.default_rng(crc32(family.make.__name__.encode()))
    least, most = family.work
    fitting = [sizes for sizes in product(*family.choices) if least <= prod(sizes) <= most]
    chosen = random.choice(len(fitting), size=count, replace=False)
    return [_named(family.make(*fitting[index]), fitting[index]) for index in chosen]


def _named(kernel: Kernel, sizes: tuple[int, ...]) -> Kernel:
    return replace(kernel, name="_".join([kernel.family, *map(str, sizes)]))
