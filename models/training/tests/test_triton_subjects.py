from itertools import islice

import pytest

from hlorank_training.measuring.triton.subjects import choices, families, pool, subjects

KERNELS = 200
TILES = 24


def test_kernels_are_distinct_and_always_the_same():
    names = [subject.name for subject, _ in islice(subjects(), KERNELS)]
    assert len(set(names)) == KERNELS
    assert names == [subject.name for subject, _ in islice(subjects(), KERNELS)]


def test_every_variant_has_choices_to_compile():
    for kind in families():
        for variant in kind.variants:
            assert len(set(pool(variant, kind))) >= TILES, variant.name


def test_the_first_choice_of_a_kernel_is_the_default():
    for subject, kind in islice(subjects(), KERNELS):
        chosen = choices(subject, kind, TILES)
        assert chosen[0] == kind.default
        assert len(set(chosen)) == TILES
        assert set(chosen) <= set(pool(subject.variant, kind))


def test_a_tile_has_blocks_from_the_most_minor_dimension_and_then_warps_and_stages():
    subject, kind = next(pair for pair in subjects() if pair[0].variant.name == "matmul_float16")
    tile = subject.tile(kind.default)
    assert (tile.output, tile.reduction, tile.input) == ((128, 128, 1), (64,), (8, 3))


@pytest.mark.parametrize("number", range(0, 60, 7))
def test_programs_cover_the_output(number: int):
    subject, kind = next(islice(subjects(), number, None))
    for choice in choices(subject, kind, TILES):
        tile = subject.tile(choice)
        assert len(tile.output) == len(subject.output)
        assert all(count >= 1 for count in subject.grid(dict(choice.blocks)))
