"""The tiles of a root operation. These tests need no IREE."""

import numpy as np
import pytest

from hlorank_tune.iree.tiles import (
    MAX_UNROLLED,
    MAX_VECTOR,
    MAX_WORKGROUPS,
    Dimension,
    Loop,
    TileSizes,
    TileSpace,
)
from hlorank_tune.measure.schema import Tile

PRODUCT = TileSpace(
    (Loop(36, False), Loop(24, False), Loop(16, True)),
    (Dimension(36, 0), Dimension(24, 1)),
    TileSizes((6, 24, 0), (6, 16, 0), (0, 0, 16)),
)
TRANSPOSE = TileSpace(
    (Loop(32, False), Loop(48, False)),
    (Dimension(48, 1), Dimension(32, 0)),
    TileSizes((16, 12), (8, 4), (0, 0)),
)
CONVOLUTION = TileSpace(
    (*(Loop(n, False) for n in (1, 6, 6, 16)), *(Loop(n, True) for n in (3, 3, 4))),
    tuple(Dimension(n, loop) for loop, n in enumerate((1, 6, 6, 16))),
    TileSizes((0, 1, 3, 16, 0, 0, 0), (1, 1, 3, 16, 0, 0, 0), (0, 0, 0, 0, 1, 1, 4)),
    keeps_ones=True,
)
SOFTMAX = TileSpace(
    (Loop(4096, False), Loop(512, True)),
    (Dimension(4096, 0), Dimension(512, None)),
    TileSizes((4, 0), (4, 0), (0, 16)),
    operations=3,
)
SPACES = {
    "product": PRODUCT,
    "transpose": TRANSPOSE,
    "convolution": CONVOLUTION,
    "softmax": SOFTMAX,
}
every_space = pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)


def random():
    return np.random.default_rng(7)


def changed_loops(one, other):
    """The loops whose sizes differ in two tiles."""
    before, after = (
        zip(tile.distribution, tile.vector, tile.reduction, strict=True) for tile in (one, other)
    )
    return [i for i, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]


def test_bounds_are_of_the_dimensions_of_the_result_most_minor_first():
    assert PRODUCT.tile(PRODUCT.default) == Tile((24, 6), (16,), (16, 6))
    assert TRANSPOSE.tile(TRANSPOSE.default) == Tile((16, 12), (), (8, 4)), (
        "the result's most minor dimension is the first loop"
    )


def test_a_dimension_that_follows_no_loop_counts_whole():
    assert SOFTMAX.tile(SOFTMAX.default) == Tile((512, 4), (16,), (512, 4))
    assert SOFTMAX.minor == 0 and PRODUCT.minor == 1


def test_reductions_are_last_loop_first_and_untiled_loops_count_whole():
    assert CONVOLUTION.tile(CONVOLUTION.default) == Tile((16, 3, 1, 1), (4, 1, 1), (16, 3, 1, 1))
    whole = TileSizes((0,) * 7, (0,) * 7, (0,) * 7)
    assert CONVOLUTION.tile(whole) == Tile((16, 6, 6, 1), (4, 3, 3), (16, 6, 6, 1))


def test_a_size_beyond_the_extent_is_the_extent():
    sizes = TileSizes((64, 24, 0), (64, 16, 0), (0, 0, 64))
    assert PRODUCT.tile(sizes) == Tile((24, 36), (16,), (16, 36))


@every_space
def test_draws_are_distinct_compact_never_the_default_and_fit_the_loops(space):
    drawn = space.draw(random(), 60)
    assert len(drawn) == 60
    assert len({space.tile(sizes) for sizes in [*drawn, space.default]}) == 61
    for sizes in drawn:
        vector = np.prod([size or 1 for size in sizes.vector])
        steps = np.prod([size or 1 for size in sizes.reduction])
        assert vector <= MAX_VECTOR and vector * steps * space.operations <= MAX_UNROLLED
        assert space.workgroups(sizes) <= MAX_WORKGROUPS
        for i, loop in enumerate(space.loops):
            numbers = sizes.distribution[i], sizes.vector[i], sizes.reduction[i]
            if loop.is_reduction:
                assert numbers[:2] == (0, 0) and 1 <= numbers[2] <= loop.extent
            else:
                whole = numbers[0] or loop.extent
                assert numbers[2] == 0 and 1 <= numbers[1] <= whole <= loop.extent


@every_space
def test_the_same_seed_draws_the_same_tiles(space):
    assert space.draw(random(), 30) == space.draw(random(), 30)
    assert space.draw(random(), 30) != space.draw(np.random.default_rng(8), 30)


@every_space
def test_neighbours_differ_in_one_or_two_loops(space):
    origin = space.draw(random(), 1)[0]
    near = space.neighbours(random(), [origin], 30)
    assert len(near) > 10
    changes = [len(changed_loops(origin, sizes)) for sizes in near]
    assert set(changes) <= ({0, 1, 2}) and 1 in changes
    assert near == space.neighbours(random(), [origin], 30)


def test_a_convolution_keeps_the_loops_that_its_default_leaves_out():
    drawn = CONVOLUTION.draw(random(), 200)
    assert {sizes.vector[:2] for sizes in drawn} == {(1, 1)}
    assert {sizes.reduction[4:6] for sizes in drawn} == {(1, 1)}
    assert len({sizes.vector[2:] for sizes in drawn}) > 5, "the other loops do change"
    free = TileSpace(CONVOLUTION.loops, CONVOLUTION.result, CONVOLUTION.default)
    assert len({sizes.reduction[4:6] for sizes in free.draw(random(), 200)}) > 1


def test_a_small_space_gives_what_there_is():
    tiny = TileSpace((Loop(2, False),), (Dimension(2, 0),), TileSizes((2,), (2,), (0,)))
    drawn = {tiny.tile(sizes) for sizes in tiny.draw(random(), 50)}
    assert drawn == {Tile((1,), (), (1,)), Tile((2,), (), (1,))}


def test_workgroups_cover_loops_that_a_tile_does_not_divide():
    assert PRODUCT.workgroups(PRODUCT.default) == 6
    assert PRODUCT.workgroups(TileSizes((7, 24, 0), (7, 8, 0), (0, 0, 4))) == 6
    assert PRODUCT.workgroups(TileSizes((0, 5, 0), (1, 5, 0), (0, 0, 4))) == 5, "0 is one piece"
