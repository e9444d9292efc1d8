"""What the kernels compute, in JAX for the graph that models read, and in PyTorch for a check."""

from typing import Any

import jax
import jax.numpy as jnp
import torch
from jax import lax

from hlorank_training.measuring.triton.subjects import Subject, Variant


def lowered(subject: Subject) -> Any:
    """Returns a kernel as JAX lowers it."""
    dtype = jnp.dtype(subject.variant.dtype)
    used = subject.inputs[: _operands(subject.variant)]
    arguments = [jax.ShapeDtypeStruct(shape, dtype) for shape in used]
    function = _FUNCTIONS[subject.variant.kernel]
    return jax.jit(lambda *arrays: function(subject.variant, *arrays)).lower(*arguments)


def expected(subject: Subject, inputs: list[torch.Tensor]) -> torch.Tensor:
    """Computes a kernel with PyTorch, in the highest precision that is fast: f32 [output]."""
    return _REFERENCES[subject.variant.kernel](subject.variant, *inputs)


def _operands(variant: Variant) -> int:
    """Returns how many of the inputs are read."""
    if variant.kernel == "matmul":
        return 2 if variant.constant("EXTRA") == "none" else 3
    if variant.kernel == "norm":
        return 3 if variant.constant("CENTRED") else 2
    if variant.kernel == "pointwise":
        return 1 if variant.constant("OPERATION") == "transpose" else 2
    return 3


def _jax_activated(x, activation: str):
    if activation == "relu":
        return jnp.maximum(x, 0)
    return x * jax.nn.sigmoid(1.702 * x) if activation == "gelu" else x


def _jax_dot(a, b, transposed: bool):
    batch = tuple(range(a.ndim - 2))
    dimensions = ((a.ndim - 1,), (b.ndim - 1 if transposed else b.ndim - 2,)), (batch, batch)
    return lax.dot_general(a, b, dimensions, preferred_element_type=jnp.float32)


def _jax_matmul(variant: Variant, a, b, *extra):
    total = _jax_dot(a, b, variant.constant("TRANSPOSED"))
    if extra:
        total = total + extra[0].astype(jnp.float32)
    return _jax_activated(total, variant.constant("ACTIVATION")).astype(a.dtype)


def _jax_gated(_: Variant, a, b, c):
    gate = _jax_dot(a, b, False)
    value = _jax_dot(a, c, False)
    return (gate * jax.nn.sigmoid(gate) * value).astype(a.dtype)


def _jax_softmax(_: Variant, x):
    value = x.astype(jnp.float32)
    powers = jnp.exp(value - value.max(-1, keepdims=True))
    return (powers / powers.sum(-1, keepdims=True)).astype(x.dtype)


def _jax_norm(variant: Variant, x, weight, *bias):
    value = x.astype(jnp.float32)
    mean = value.mean(-1, keepdims=True) if bias else 0.0
    scale = lax.rsqrt((value * value).mean(-1, keepdims=True) - mean * mean + 1e-5)
    result = (value - mean) * scale * weight.astype(jnp.float32)
    return (result + bias[0].astype(jnp.float32) if bias else result).astype(x.dtype)


def _jax_reduction(variant: Variant, x):
    axis = -1 if variant.kernel == "reduce_rows" else 0
    value = x.astype(jnp.float32)
    found = value.sum(axis) if variant.constant("OPERATION") == "sum" else value.max(axis)
    return found.astype(x.dtype)


def _jax_pointwise(variant: Variant, x, *y):
    operation = variant.constant("OPERATION")
    if operation == "transpose":
        return x.T
    if operation == "multiply_add":
        return x * y[0] + x
    both = x.astype(jnp.float32) + y[0].astype(jnp.float32)
    return _jax_activated(both, "gelu").astype(x.dtype)


def _jax_attention(variant: Variant, q, k, v):
    product = _jax_dot(q, k, True) * variant.constant("WIDTH") ** -0.5
    if variant.constant("CAUSAL"):
        length = q.shape[1]
        product = jnp.where(jnp.tri(length, dtype=bool), product, -1e30)
    share = _jax_softmax(variant, product).astype(v.dtype)
    return _jax_dot(share, v, False).astype(q.dtype)


_FUNCTIONS = {
    "matmul": _jax_matmul,
    "gated": _jax_gated,
    "softmax": _jax_softmax,
    "norm": _jax_norm,
    "reduce_rows": _jax_reduction,
    "reduce_columns": _jax_reduction,
    "pointwise": _jax_pointwise,
    "attention": _jax_attention,
}


def _activated(x: torch.Tensor, activation: str) -> torch.Tensor:
    if activation == "relu":
        return x.relu()
    return x * torch.sigmoid(1.702 * x) if activation == "gelu" else x


def _matmul(variant: Variant, a, b, extra):
    total = (a @ (b.mT if variant.constant("TRANSPOSED") else b)).float()
    if variant.constant("EXTRA") != "none":
        total = total + extra.float()
    return _activated(total, variant.constant("ACTIVATION"))


def _gated(_: Variant, a, b, c):
    gate = (a @ b).float()
    return gate * torch.sigmoid(gate) * (a @ c).float()


def _norm(variant: Variant, x, weight, bias):
    shape = x.shape[-1:]
    if variant.constant("CENTRED"):
        return torch.nn.functional.layer_norm(x.float(), shape, weight.float(), bias.float())
    return torch.nn.functional.rms_norm(x.float(), shape, weight.float(), 1e-5)


def _reduction(variant: Variant, x):
    axis = -1 if variant.kernel == "reduce_rows" else 0
    return x.float().sum(axis) if variant.constant("OPERATION") == "sum" else x.float().amax(axis)


def _pointwise(variant: Variant, x, y):
    operation = variant.constant("OPERATION")
    if operation == "transpose":
        return x.mT.float()
    if operation == "multiply_add":
        return (x * y + x).float()
    return _activated(x.float() + y.float(), "gelu")


def _attention(variant: Variant, q, k, v):
    causal = variant.constant("CAUSAL")
    attend = torch.nn.functional.scaled_dot_product_attention
    return attend(q[None], k[None], v[None], is_causal=causal)[0].float()


_REFERENCES = {
    "matmul": _matmul,
    "gated": _gated,
    "softmax": lambda _, x: x.float().softmax(-1),
    "norm": _norm,
    "reduce_rows": _reduction,
    "reduce_columns": _reduction,
    "pointwise": _pointwise,
    "attention": _attention,
}
