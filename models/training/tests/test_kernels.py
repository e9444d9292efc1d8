import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="jax is not installed")

from hlorank_tune.measure.results import largest_difference  # noqa: E402

from hlorank_training.measuring import kernels as families  # noqa: E402
from hlorank_training.measuring.choose_tiles import (  # noqa: E402
    TileLimits,
    candidates,
    choose_tiles,
    default_tile,
)
from hlorank_training.measuring.kernel_shapes import measured_kernels  # noqa: E402

SMALL = [
    families.matmul(8, 12, 6),
    families.matmul_transposed(8, 12, 6),
    families.matmul_bias_gelu(8, 12, 6),
    families.batched_matmul(2, 4, 6, 8),
    families.elementwise_reduce(4, 6, 8),
    families.column_reduce(4, 6, 8),
    families.pairwise_distance(6, 4, 8),
    families.softmax(2, 6, 8),
    families.layer_norm(2, 6, 8),
    families.transpose(4, 6, 2),
    families.outer_product(8, 6),
    families.elementwise_chain(8, 6),
    families.transposed_add(8, 6),
    families.convolution(2, 4, 3, 4),
    families.depthwise_convolution(2, 4, 6),
    families.max_pool(2, 4, 6),
    families.gated_matmul(8, 12, 6),
    families.attention_scores(2, 4, 6, 8),
    families.log_sum_exp(4, 6, 8),
    families.matmul_into_transposed(8, 12, 6),
    families.max_plus(6, 4, 8),
    families.batched_outer(2, 4, 6),
    families.scale_shift(2, 4, 6),
    families.channels_first(2, 4, 6),
    families.stencil(8, 6),
    families.pointwise_convolution(2, 4, 6, 4),
    families.strided_convolution(2, 4, 3, 4),
    families.convolution_1d(2, 8, 3, 4),
]


def test_every_family_that_is_measured_is_tested_here():
    assert {kernel.family for kernel in measured_kernels(1)} == {k.family for k in SMALL}


@pytest.mark.parametrize("kernel", SMALL, ids=lambda kernel: kernel.family)
def test_a_tiled_kernel_computes_what_the_untiled_one_does(kernel):
    arguments = kernel.arguments()
    expected = [jax.jit(kernel.whole)(*arguments)]
    assert expected[0].shape == kernel.output
    by_steps = sorted(candidates(kernel, TileLimits()), key=kernel.steps)
    for tile in (by_steps[len(by_steps) // 2], by_steps[-1]):
        assert kernel.steps(tile) > 1
        actual = [jax.jit(kernel.tiled(tile))(*arguments)]
        assert largest_difference(expected, actual) < 1e-5


def test_every_candidate_fits_the_limits():
    kernel = families.matmul(64, 96, 128)
    limits = TileLimits(scratchpad_bytes=8192, steps=256)
    tiles = candidates(kernel, limits)
    assert tiles
    assert all(kernel.footprint(tile) <= 8192 and kernel.steps(tile) <= 256 for tile in tiles)


def test_the_footprint_counts_inputs_and_output_in_bytes():
    kernel = families.matmul(64, 96, 128)
    tile = kernel.tile((4, 8), 16)
    assert kernel.footprint(tile) == 4 * (4 * 16 + 16 * 8 + 4 * 8)


def test_the_default_comes_first_and_has_the_largest_footprint():
    kernel = families.transposed_add(64, 48)
    limits = TileLimits(scratchpad_bytes=4096)
    tiles = choose_tiles(kernel, limits, np.random.default_rng(0))
    assert tiles[0] == default_tile(kernel, candidates(kernel, limits))
    assert kernel.footprint(tiles[0]) == max(map(kernel.footprint, tiles))
    assert len(set(tiles)) == len(tiles)


def test_there_are_hundreds_of_kernels_of_many_families_and_their_names_are_distinct():
    made = measured_kernels()
    assert len(made) >= 600
    assert len({kernel.family for kernel in made}) >= 20
    assert len({kernel.name for kernel in made}) == len(made)
    assert all(kernel.name.startswith(f"{kernel.family}_") for kernel in made)


def test_kernels_are_the_same_on_every_call_and_alternate_between_families():
    made = measured_kernels(2)
    assert [kernel.name for kernel in measured_kernels(2)] == [kernel.name for kernel in made]
    half = len(made) // 2
    assert len({kernel.family for kernel in made[:half]}) == half
    assert [kernel.family for kernel in made[:half]] == [kernel.family for kernel in made[half:]]


@pytest.mark.parametrize("kernel", measured_kernels(1), ids=lambda kernel: kernel.family)
def test_a_kernel_of_any_family_has_several_tiles_to_choose_from(kernel):
    limits = TileLimits()
    tiles = choose_tiles(kernel, limits, np.random.default_rng(0))
    assert 6 <= len(tiles) <= limits.tiles
    assert len({kernel.footprint(tile) for tile in tiles}) > 1
