"""Dispatches of real programs as HLO: they parse, and compute what the programs compute."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="jax is not installed")
pytest.importorskip("iree.compiler", reason="iree-base-compiler is not installed")

import jax
import jax.numpy as jnp
from jax import lax
from jaxlib import _hlo
from small_programs import shape, stablehlo

from hlorank_tune.iree.compiler import SOURCES, STABLEHLO_FLAGS, lower_text
from hlorank_tune.iree.dispatch import operations, parse
from hlorank_tune.iree.hlo import kernel_hlo
from hlorank_tune.iree.hlo_text import UnsupportedDispatch
from hlorank_tune.measure.execute import Executable
from hlorank_tune.measure.schema import HloModuleProto


def _conv(labels=("NHWC", "HWIO", "NHWC"), **settings: Any) -> Callable[..., Any]:
    rank = len(labels[0]) - 2
    settings = {"window_strides": (1,) * rank, "padding": "VALID"} | settings
    return lambda x, w: lax.conv_general_dilated(x, w, dimension_numbers=labels, **settings)


def _pool(operation: Any, start: float, window: tuple, strides: tuple) -> Callable[..., Any]:
    return lambda x: lax.reduce_window(x, start, operation, window, strides, "VALID")


def _norm(x, scale, shift):
    centred = x - x.mean(-1, keepdims=True)
    return centred * lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale + shift


def _attention(q, k, v):
    return jax.nn.softmax(jnp.einsum("bhqd,bhkd->bhqk", q, k) / 8) @ v


def _lstm(x, h, c, w, u, b):
    i, f, g, o = jnp.split(x @ w + h @ u + b, 4, -1)
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


def _scalars(x):
    powers = lax.log1p(abs(x)) - jnp.expm1(x) + jnp.sqrt(abs(x)) + jnp.exp(x) / (jnp.sin(x) + 2)
    return powers + jnp.floor(x) * jnp.ceil(x) - jnp.round(x) + jnp.cos(x) + jnp.sign(x)


BFLOAT, INT, BYTE = jnp.bfloat16, jnp.int32, jnp.int8
IMAGE, GRID = shape(2, 18, 18, 8), shape(32, 64)

PROGRAMS: dict[str, tuple[Callable[..., Any], str, tuple[jax.ShapeDtypeStruct, ...]]] = {
    "matmul": (lambda a, b: a @ b, "dot", (shape(64, 48), shape(48, 96))),
    "matmul_b_transposed": (lambda a, b: a @ b.T, "dot", (shape(64, 48), shape(96, 48))),
    "matvec": (lambda a, b: a @ b, "dot", (shape(64, 48), shape(48))),
    "vecmat": (lambda a, b: a @ b, "dot", (shape(48), shape(48, 64))),
    "inner": (lambda a, b: a @ b, "dot", (shape(48), shape(48))),
    "batch_matmul": (lambda a, b: a @ b, "dot", (shape(4, 64, 48), shape(4, 48, 96))),
    "outer": (jnp.outer, "multiply", (shape(48), shape(64))),
    "fused": (
        lambda a, b, c, r: jax.nn.relu(a @ b + c) + r,
        "dot",
        (shape(64, 48), shape(48, 96), shape(96), shape(64, 96)),
    ),
    "bfloat_to_float": (
        lambda a, b: lax.dot(a, b, preferred_element_type=jnp.float32),
        "dot",
        (shape(64, 48, dtype=BFLOAT), shape(48, 96, dtype=BFLOAT)),
    ),
    "byte_to_int": (
        lambda a, b: lax.dot(a, b, preferred_element_type=INT),
        "dot",
        (shape(64, 48, dtype=BYTE), shape(48, 96, dtype=BYTE)),
    ),
    "conv_nhwc": (_conv(), "convolution", (IMAGE, shape(3, 3, 8, 16))),
    "conv_one_image": (_conv(), "convolution", (shape(1, 18, 18, 8), shape(3, 3, 8, 16))),
    "conv_nchw": (
        _conv(("NCHW", "OIHW", "NCHW")),
        "convolution",
        (shape(2, 8, 18, 18), shape(16, 8, 3, 3)),
    ),
    "conv_strided": (_conv(window_strides=(2, 2)), "convolution", (IMAGE, shape(3, 3, 8, 16))),
    "conv_dilated": (_conv(rhs_dilation=(2, 2)), "convolution", (IMAGE, shape(3, 3, 8, 16))),
    "conv_1d": (_conv(("NWC", "WIO", "NWC")), "convolution", (shape(2, 34, 8), shape(3, 8, 16))),
    "conv_3d": (
        _conv(("NDHWC", "DHWIO", "NDHWC")),
        "convolution",
        (shape(2, 8, 8, 8, 4), shape(3, 3, 3, 4, 8)),
    ),
    "conv_depthwise": (_conv(feature_group_count=8), "convolution", (IMAGE, shape(3, 3, 1, 8))),
    "conv_multiplied": (_conv(feature_group_count=8), "convolution", (IMAGE, shape(3, 3, 1, 16))),
    "conv_grouped": (_conv(feature_group_count=4), "convolution", (IMAGE, shape(3, 3, 2, 16))),
    "max_pool": (
        _pool(lax.max, -jnp.inf, (1, 2, 2, 1), (1, 2, 2, 1)),
        "reduce-window",
        (IMAGE,),
    ),
    "sum_pool": (_pool(lax.add, 0.0, (1, 3, 3, 1), (1, 2, 2, 1)), "reduce-window", (IMAGE,)),
    "softmax": (jax.nn.softmax, "exponential", (GRID,)),
    "sum_first": (lambda x: x.sum(0), "reduce", (shape(6, 32, 64),)),
    "sum_middle": (lambda x: x.sum(1), "reduce", (shape(6, 32, 64),)),
    "sum_last": (lambda x: x.sum(2), "reduce", (shape(6, 32, 64),)),
    "max_all": (jnp.max, "reduce", (GRID,)),
    "product": (lambda x: x.prod(-1), "reduce", (GRID,)),
    "argmax": (lambda x: jnp.argmax(x, -1), "reduce", (GRID,)),
    "transpose": (lambda x: x.transpose(2, 0, 1), "transpose", (shape(6, 32, 64),)),
    "transpose_add": (lambda x, y: x.T + y, "transpose", (GRID, shape(64, 32))),
    "gelu": (jax.nn.gelu, "tanh", (GRID,)),
    "scalars": (_scalars, "cosine", (GRID,)),
    "embedding": (lambda t, i: t[i], "gather", (shape(100, 32), shape(4, 7, dtype=INT))),
    "one_hot": (lambda i: jax.nn.one_hot(i, 10), "iota", (shape(16, dtype=INT),)),
    "reverse": (lambda x: x[:, ::-1] + 1, "gather", (GRID,)),
    "where": (lambda a, b: jnp.where(a > b, a, b * 2), "select", (GRID, GRID)),
}
"""Programs of one dispatch, and an instruction that the HLO contains."""

SEVERAL = {
    "attention": (_attention, (shape(2, 4, 32, 16),) * 3),
    "layer_norm": (_norm, (GRID, shape(64), shape(64))),
    "min_max_sum": (lambda x: (x.min(-1), x.max(-1), x.sum(-1)), (GRID,)),
    "log_softmax": (jax.nn.log_softmax, (GRID,)),
    "lstm": (
        _lstm,
        (shape(4, 32), shape(4, 16), shape(4, 16), shape(32, 64), shape(16, 64), shape(64)),
    ),
    "padded": (_conv(padding="SAME"), (IMAGE, shape(3, 3, 8, 16))),
    "sliced": (lambda a: a[:, 4:20:2] + 1, (GRID,)),
    "joined": (lambda a, b: jnp.concatenate([a, b], -1) * 2, (GRID, GRID)),
}


_MODULES: list[Any] = []
"""Keeps the modules, whose operations are invalid without them."""


def _functions(program: Callable[..., Any], shapes: tuple) -> list[Any]:
    module = parse(lower_text(stablehlo(program, *shapes), SOURCES, STABLEHLO_FLAGS))
    _MODULES.append(module)
    return [o for o in operations(module.operation) if o.name == "func.func"]


def _run(text: str, arguments: list[np.ndarray]) -> list[np.ndarray]:
    parsed = _hlo.hlo_module_from_text(text)
    module = HloModuleProto.FromString(parsed.as_serialized_hlo_module_proto())
    return [np.asarray(a) for a in Executable(module, [jnp.asarray(a) for a in arguments])()]


def _draw(of: jax.ShapeDtypeStruct, random: np.random.Generator) -> np.ndarray:
    if jnp.issubdtype(of.dtype, jnp.integer):
        return random.integers(0, 9, of.shape).astype(of.dtype)
    return random.standard_normal(of.shape).astype(of.dtype)


def _loaded(function: Any, arguments: list[np.ndarray]) -> list[np.ndarray]:
    """The arguments in the order and the shapes in which the dispatch loads them."""
    arrays = []
    for operation in operations(function):
        if operation.name == "iree_tensor_ext.dispatch.tensor.load":
            subspan = operation.operands[0].owner.operation
            argument = arguments[subspan.attributes["binding"].value]
            arrays.append(argument.reshape(operation.results[0].type.shape))
    return arrays


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_dispatch_computes_what_its_program_computes(name):
    program, instruction, shapes = PROGRAMS[name]
    (function,) = _functions(program, shapes)
    text = kernel_hlo(function, name)
    assert f" {instruction}(" in text
    arguments = [_draw(each, np.random.default_rng(0)) for each in shapes]
    expected = jax.tree.leaves(jax.jit(program)(*arguments))
    found = _run(text, _loaded(function, arguments))
    for left, right in zip(found, expected, strict=True):
        wanted = np.asarray(right, dtype=np.float64)
        got = left.astype(np.float64).reshape(wanted.shape)
        np.testing.assert_allclose(got, wanted, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("name", SEVERAL)
def test_every_dispatch_of_a_program_is_a_module_that_xla_parses(name):
    functions = _functions(*SEVERAL[name])
    assert functions
    for number, function in enumerate(functions):
        _hlo.hlo_module_from_text(kernel_hlo(function, f"{name}_{number}"))


def test_a_product_with_bias_and_activation_has_no_needless_instructions():
    program, _, shapes = PROGRAMS["fused"]
    (function,) = _functions(program, shapes)
    text = kernel_hlo(function, "fused").split("ENTRY")[1]
    # four parameters, zero for the activation, the broadcasts of zero and of the bias
    assert text.count(" = ") == 4 + 1 + 2 + len(["dot", "add", "maximum", "add"])


def test_an_operation_without_counterpart_is_named():
    functions = _functions(lambda x: jnp.sort(x, -1), (GRID,))
    with pytest.raises(UnsupportedDispatch, match=r"iree_linalg_ext\.sort"):
        [kernel_hlo(function, "sort") for function in functions]
