"""What a JAX function passes through on its way to a compiler, as a serialized HloModuleProto.

JAX is never imported here: stages are recognized by what they have.
"""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from hlorank.checks.arguments import shown
from hlorank.checks.errors import ArgumentError

T = TypeVar("T")

_EXPECTED = "expected the result of jax.jit(function).lower(*arguments)"
_OTHERS = "from_hlo_text takes text, from_hlo_proto a serialized module, and from_file a path"
_DEEPEST = 8
"""Maximum number of wrappers around a lowered function."""


def module_of_lowered(lowered: object) -> bytes:
    """Returns the serialized module before optimization of a lowered or traced JAX function.

    Also takes wrappers around them, such as those of Equinox and Flax, ``jax.export.Exported``,
    and modules of HLO or StableHLO in memory.

    Raises:
        ArgumentError: for everything else; the message says what it is and what to do.
    """
    stage = _unwrapped(lowered)
    if hasattr(stage, "compiler_ir"):
        return _guarded(lowered, lambda: _serialized(stage.compiler_ir("hlo")))
    if hasattr(stage, "as_serialized_hlo_module_proto"):
        return _guarded(lowered, lambda: _serialized(stage))
    descriptor = getattr(type(stage), "DESCRIPTOR", None)
    if getattr(descriptor, "name", None) in ("HloModuleProto", "HloProto"):
        content: bytes = stage.SerializeToString()
        return content
    if hasattr(stage, "mlir_module_serialized") and hasattr(stage, "in_avals"):
        return _guarded(lowered, lambda: _module_of_exported(stage))
    # An MLIR module, as `compiler_ir()` returns it.
    if type(stage).__name__ == "Module" and hasattr(stage, "operation"):
        from jaxlib import _jax

        convert = _jax.mlir.mlir_module_to_xla_computation
        return _guarded(lowered, lambda: _serialized(convert(str(stage))))
    raise ArgumentError(f"{shown(lowered)} was given, {_EXPECTED}; {_OTHERS}")


def _unwrapped(stage: Any) -> Any:
    """Follows wrappers to the stage of JAX in them, and lowers a traced function."""
    for _ in range(_DEEPEST):
        if hasattr(stage, "compiler_ir") or isinstance(stage, type):
            return stage
        if hasattr(stage, "jaxpr") and callable(getattr(stage, "lower", None)):
            return _guarded(stage, stage.lower)
        inner = getattr(stage, "lowered", None)
        if inner is None or inspect.isroutine(inner):
            return stage
        stage = inner
    return stage


def _guarded(given: object, convert: Callable[[], T]) -> T:
    """Converts; errors of JAX are of many types."""
    try:
        return convert()
    except ArgumentError:
        raise
    except Exception as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ArgumentError(
            f"{shown(given)} cannot be converted to HLO: {reason}; {_EXPECTED} for one platform"
        ) from error


def _serialized(module: Any) -> bytes:
    content: bytes = module.as_serialized_hlo_module_proto()
    return content


def _module_of_exported(exported: Any) -> bytes:
    import jax

    sizes = [size for array in exported.in_avals for size in getattr(array, "shape", ())]
    if not all(isinstance(size, int) for size in sizes):
        raise ArgumentError("the exported function has symbolic shapes: export it with fixed ones")
    arguments, named = jax.tree.unflatten(exported.in_tree, exported.in_avals)
    return module_of_lowered(jax.jit(exported.call).lower(*arguments, **named))
