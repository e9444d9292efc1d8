import sys
from collections import Counter
from importlib.metadata import version

import numpy as np
import pytest

pytest.importorskip("jax", reason="jax is not installed")
pytest.importorskip("halide", reason="halide is not installed")

from hlorank_tune.measure.atomic_files import read_json
from hlorank_tune.measure.results import largest_difference
from hlorank_tune.measure.rounds import Protocol

from hlorank_training.measuring import kernels as families
from hlorank_training.measuring.choose_tiles import TileLimits, choose_tiles
from hlorank_training.measuring.collect_tile import HALIDE_SHAPES, SOURCES, _error, collect_tile
from hlorank_training.measuring.halide_kernels import compile_halide, runs_on_halide
from hlorank_training.measuring.kernel_shapes import measured_kernels

SMALL = [
    families.matmul(8, 48, 6),
    families.matmul_bias_gelu(8, 12, 6),
    families.pairwise_distance(6, 4, 48),
    families.elementwise_reduce(4, 6, 8),
    families.column_reduce(4, 6, 8),
    families.softmax(2, 6, 24),
    families.transpose(4, 6, 10),
    families.outer_product(8, 6),
    families.elementwise_chain(8, 6),
    families.stencil(6, 32),
    families.convolution(2, 4, 3, 8),
    families.depthwise_convolution(2, 4, 6),
]


@pytest.mark.parametrize("kernel", SMALL, ids=lambda kernel: kernel.family)
def test_a_loop_nest_computes_what_the_kernel_does(kernel):
    arguments = kernel.arguments()
    expected = [kernel.whole(*arguments)]
    tiles = choose_tiles(kernel, TileLimits(tiles=3), np.random.default_rng(3))
    for run in compile_halide(kernel, tiles, arguments):
        run().fill(np.nan)  # the next run must write all of it again
        assert largest_difference(expected, [run()]) < 1e-4


def test_a_tile_that_gives_no_numbers_is_noticed():
    kernel = families.outer_product(8, 6)
    arguments = kernel.arguments()
    right, wrong = kernel.whole(*arguments), np.full(kernel.output, np.nan, np.float32)
    assert np.isnan(_error(kernel, arguments, [lambda: right, lambda: wrong]))


def test_without_halide_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "halide", None)
    for module in ("halide_kernels", "loop_nest"):
        monkeypatch.delitem(sys.modules, f"hlorank_training.measuring.{module}")
    with pytest.raises(ModuleNotFoundError, match=r"pip install -e '\.\[halide\]'"):
        SOURCES["halide"]()


def test_the_first_shapes_of_every_family_are_collected():
    families_of = Counter(kernel.family for kernel in SOURCES["halide"]().kernels)
    assert families_of == {kernel.family: HALIDE_SHAPES for kernel in SMALL}


def test_the_record_names_the_source_and_its_version(tmp_path):
    collect_tile(tmp_path, 0, Protocol(), TileLimits(), "halide")
    provenance = read_json(tmp_path / "provenance.json")
    assert (provenance["source"], provenance["halide"]) == ("halide", version("halide"))


def test_a_folder_takes_one_source_only(tmp_path):
    collect_tile(tmp_path, 0, Protocol(), TileLimits(), "halide")
    with pytest.raises(RuntimeError, match="another folder"):
        collect_tile(tmp_path, 0, Protocol(), TileLimits())


def test_every_family_here_is_tested():
    supported = {kernel.family for kernel in measured_kernels(1) if runs_on_halide(kernel)}
    assert supported == {kernel.family for kernel in SMALL}


def test_families_without_a_loop_nest_are_told_apart():
    assert not runs_on_halide(families.max_pool(2, 4, 6))
