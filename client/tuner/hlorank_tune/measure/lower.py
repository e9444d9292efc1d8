"""Lowers JAX functions to the HLO modules, before optimization, that are featurized."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend import core as jax_core

from hlorank_tune.measure.schema import HloModuleProto

_INLINED = frozenset(
    {
        "jit",
        "pjit",
        "custom_jvp_call",
        "custom_vjp_call",
        "closed_call",
        "core_call",
        "remat",
        "checkpoint",
    }
)


def lower(name: str, function: Callable[..., Any], arguments: Sequence[Any]):
    """Returns the stripped HloModuleProto of ``function``; calls are inlined, as XLA would do."""
    closed = jax.make_jaxpr(function)(*arguments)

    def flat(*values):
        return _evaluate(closed.jaxpr, closed.consts, values)

    flat.__name__ = name
    lowered = jax.jit(flat, keep_unused=True).lower(*jax.tree.leaves(arguments))
    serialized = lowered.compiler_ir("hlo").as_serialized_hlo_module_proto()
    return strip(HloModuleProto.FromString(serialized))


def flat_arguments(arguments: Any) -> list[np.ndarray]:
    """Flattens a tree of arguments to arrays of the types that a lowered function takes."""
    return [np.asarray(jax.numpy.asarray(leaf)) for leaf in jax.tree.leaves(arguments)]


def strip(module):
    """Removes source metadata, which is large, contains paths, and is read by no feature."""
    module.ClearField("stack_frame_index")
    for computation in module.computations:
        for instruction in computation.instructions:
            instruction.ClearField("metadata")
            instruction.ClearField("frontend_attributes")
    return module


def _nested(parameters: dict[str, Any]):
    inner = parameters.get("jaxpr") or parameters.get("call_jaxpr") or parameters["fun_jaxpr"]
    return (inner.jaxpr, inner.consts) if hasattr(inner, "jaxpr") else (inner, [])


def _bind(equation, inputs):
    bound = equation.primitive.get_bind_params(equation.params)
    functions, parameters = bound if isinstance(bound, tuple) else ((), bound)
    outputs = equation.primitive.bind(*functions, *inputs, **parameters)
    return list(outputs) if equation.primitive.multiple_results else [outputs]


def _evaluate(jaxpr, constants, arguments):
    values = dict(zip(jaxpr.constvars, constants, strict=True))
    values.update(zip(jaxpr.invars, arguments, strict=True))

    def read(variable):
        return variable.val if isinstance(variable, jax_core.Literal) else values[variable]

    for equation in jaxpr.eqns:
        inputs = [read(variable) for variable in equation.invars]
        if equation.primitive.name in _INLINED:
            inner, inner_constants = _nested(equation.params)
            outputs = _evaluate(inner, inner_constants, inputs)
        else:
            outputs = _bind(equation, inputs)
        values.update(zip(equation.outvars, outputs, strict=True))
    return [read(variable) for variable in jaxpr.outvars]
