"""The dispatches that IREE forms of small programs."""

import re

import pytest

pytest.importorskip("jax", reason="jax is not installed")
pytest.importorskip("iree.compiler", reason="iree-base-compiler is not installed")

import jax
import jax.numpy as jnp
from small_programs import dispatches, mixed_dispatches, product, shape, stablehlo, tile_of

from hlorank_tune.iree.compiler import STABLEHLO_FLAGS
from hlorank_tune.iree.dispatch import (
    find_dispatches,
    function_of,
    lowering_config,
    parse,
    root_of,
    with_tile,
)
from hlorank_tune.iree.hlo import kernel_hlo
from hlorank_tune.iree.tiles import Dimension, Loop, TileSizes


def one(function, *shapes):
    (found,) = dispatches(function, *shapes)
    return found


def extents(space, is_reduction):
    return [loop.extent for loop in space.loops if loop.is_reduction is is_reduction]


def test_a_program_has_a_dispatch_for_every_kernel_in_order():
    kinds = [dispatch.name.split("_", 3)[3] for dispatch in mixed_dispatches()]
    assert [kind.split("_")[0] for kind in kinds] == [
        "conv",
        "matmul",
        "softmax",
        "transpose",
        "elementwise",
    ]
    assert [d.name.split("_")[2] for d in mixed_dispatches()] == list("01234")
    assert all(d.calls == 1 and d.space and not d.untunable for d in mixed_dispatches())


def test_the_root_decides_loops_output_and_default():
    space = product().space
    assert space.loops == (Loop(24, False), Loop(48, False), Loop(32, True))
    assert space.result == (Dimension(24, 0), Dimension(48, 1)) and not space.keeps_ones
    convolution, _, softmax, transpose, elementwise = (d.space for d in mixed_dispatches())
    assert extents(convolution, False) == [2, 6, 6, 16]
    assert extents(convolution, True) == [3, 3, 4] and convolution.keeps_ones
    assert extents(softmax, True) == [24] and softmax.operations == 3
    assert [d.loop for d in transpose.result] == [1, 0], "the root iterates over its input"
    assert elementwise.loops == (Loop(32 * 48, False),), "IREE collapses the dimensions"


@pytest.mark.parametrize(
    ("function", "shapes", "result"),
    [
        (
            lambda a, b: jnp.einsum("bkm,bkn->nbm", a, b) * 2,
            [(4, 32, 64), (4, 32, 96)],
            [(96, 1), (4, 0), (64, 2)],
        ),
        (lambda a: jax.nn.softmax(a), [(64, 24)], [(64, 0), (24, None)]),
        (lambda a, b: (a @ b).reshape(4, 6, 48), [(24, 32), (32, 48)], [(24, 0), (48, 1)]),
        (
            lambda a, b: jax.lax.conv(a[None], b, (1, 1), "VALID")[0],
            [(8, 18, 18), (12, 8, 3, 3)],
            [(12, 3), (16, 1), (16, 2)],
        ),
    ],
    ids=["transposed", "reduced", "reshaped", "one image"],
)
def test_dimensions_of_the_result_follow_loops_of_the_root(function, shapes, result):
    (dispatch,) = dispatches(function, *(shape(*sizes) for sizes in shapes))
    assert [(d.extent, d.loop) for d in dispatch.space.result] == result
    with function_of(dispatch.source) as source:
        module = kernel_hlo(source, "kernel")
    root = re.search(r"ROOT \S+ = \w+\[([\d,]+)\]", module)[1]
    assert root == ",".join(str(extent) for extent, _ in result), (
        "the bounds of a tile belong to the dimensions of the kernel's output"
    )


def test_the_default_tile_is_the_one_that_iree_prints():
    for dispatch in mixed_dispatches():
        with function_of(dispatch.configured) as function:
            config = str(root_of(function).attributes["lowering_config"])
        assert lowering_config(dispatch.space.default) == tile_of(config)


def test_fused_operations_follow_the_root():
    fused = one(lambda a, b, c: jax.nn.relu(a @ b + c), shape(24, 32), shape(32, 48), shape(48))
    assert fused.space.loops == product().space.loops
    with function_of(fused.configured) as function:
        assert root_of(function).name == "linalg.matmul"
    assert fused.space.operations == 2


def test_bindings_have_the_sizes_and_types_of_the_buffers():
    assert [(b.bytes, b.element) for b in product().bindings] == [
        (4 * 24 * 32, "f32"),
        (4 * 32 * 48, "f32"),
        (4 * 24 * 48, "f32"),
    ]
    half = one(lambda x: x * 2, shape(64, dtype=jnp.bfloat16))
    assert {b.element for b in half.bindings} == {"bf16"}
    assert {b.bytes for b in half.bindings} == {128}


def test_a_kernel_that_is_called_at_several_places_is_one_dispatch():
    def twice(x, w):
        return jnp.tanh(jnp.tanh(x @ w) @ w)

    found = one(twice, shape(16, 32), shape(32, 32))
    assert found.calls == 2


def test_offsets_that_a_call_passes_are_constants():
    found = one(lambda a, b, w: (a @ w, b @ w), shape(16, 32), shape(16, 32), shape(32, 32))
    assert found.calls == 2, "both write into one buffer of results"
    assert found.constants and {kind for _, kind in found.constants} == {"i32"}
    assert found.configured.count("hal.interface.constant.load") == len(found.constants)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (jnp.cumsum, "pipeline Default is for copies and scalars"),
        (jnp.sort, "pipeline Default is for copies and scalars"),
        (jnp.sum, "tiling levels are distribution, vector_reduction"),
    ],
    ids=["scan", "sort", "sum to a scalar"],
)
def test_a_dispatch_without_tiles_says_why(function, reason):
    found = one(function, shape(64))
    assert found.space is None and found.untunable == reason


def test_dynamic_shapes_have_no_tiles():
    text = """
    func.func @main(%x: tensor<?x16xf32>) -> tensor<?x16xf32> {
      %0 = stablehlo.tanh %x : tensor<?x16xf32>
      return %0 : tensor<?x16xf32>
    }"""
    (found,) = find_dispatches(text, STABLEHLO_FLAGS)
    assert found.space is None and "dynamic" in found.untunable


def test_a_key_belongs_to_the_work_and_not_to_names():
    text = stablehlo(lambda a, b: a @ b, shape(24, 32), shape(32, 48))
    (renamed,) = find_dispatches(text.replace("@main", "@step"), STABLEHLO_FLAGS)
    assert renamed.name == product().name.replace("main", "step")
    assert renamed.key == product().key
    other = one(lambda a, b: a @ b, shape(24, 32), shape(32, 64))
    assert other.key != product().key


def test_a_tile_is_set_at_the_root_alone():
    fused = one(lambda a, b, c: a @ b + c, shape(24, 32), shape(32, 48), shape(48))
    sizes = TileSizes((12, 24, 0), (4, 8, 0), (0, 0, 8))
    text = with_tile(fused, sizes)
    assert lowering_config(sizes) == (
        "#iree_cpu.lowering_config<distribution = [12, 24, 0], "
        "vector_common_parallel = [4, 8, 0], vector_reduction = [0, 0, 8]>"
    )
    assert text.count("lowering_config = ") == 1
    with function_of(text) as function:
        assert str(root_of(function).attributes["lowering_config"]) == lowering_config(sizes)
    assert parse(f"module {{\n{fused.device}\n{text}\n}}")
