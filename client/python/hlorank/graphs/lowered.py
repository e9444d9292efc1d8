"""What a JAX function passes through on its way to a compiler, as a serialized HloModuleProto.

JAX is never imported here: stages are recognized by what they have.
"""

import inspect
from collections.abc import Callable
from functools import partial
from os import PathLike
from typing import Any, TypeVar

from hlorank.checks.arguments import shown
from hlorank.checks.errors import ArgumentError

T = TypeVar("T")

_EXPECTED = "expected the result of jax.jit(function).lower(*arguments)"
_LOWER = "lower it: jax.jit(function).lower(*arguments)"
_DEEPEST = 8
"""Maximum number of wrappers around a lowered function."""
_OTHER_LIBRARIES = {
    "torch": "PyTorch does not lower to HLO by itself: dump the module with torch_xla and "
    "XLA_FLAGS='--xla_dump_to=FOLDER --xla_dump_hlo_as_proto', and use Graph.from_file",
    "tensorflow": "use Graph.from_hlo_proto(function.experimental_get_compiler_ir(*arguments)"
    "(stage='hlo_serialized')) of a tf.function with jit_compile=True",
}
"""What to do with the objects of other libraries, by their package."""


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
    if _is_message(stage):
        content: bytes = stage.SerializeToString()
        return content
    if _is_exported(stage):
        return _guarded(lowered, lambda: _module_of_exported(stage))
    if _is_mlir(stage):
        return _guarded(lowered, lambda: _module_of_mlir(stage))
    raise ArgumentError(_refusal(lowered, stage))


def _unwrapped(stage: Any) -> Any:
    """Follows wrappers to the stage of JAX in them, and lowers a traced function."""
    for _ in range(_DEEPEST):
        if hasattr(stage, "compiler_ir") or isinstance(stage, type):
            return stage
        if hasattr(stage, "jaxpr") and callable(getattr(stage, "lower", None)):
            return _guarded(stage, stage.lower)
        inner = getattr(stage, "lowered", None)
        inner = getattr(stage, "compiled", None) if inner is None else inner
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
            f"{_named(given)} cannot be converted to HLO: {reason}; {_EXPECTED} for one platform"
        ) from error


def _serialized(module: Any) -> bytes:
    content: bytes = module.as_serialized_hlo_module_proto()
    return content


def _is_message(stage: object) -> bool:
    descriptor = getattr(type(stage), "DESCRIPTOR", None)
    return getattr(descriptor, "name", None) in ("HloModuleProto", "HloProto")


def _is_exported(stage: object) -> bool:
    return hasattr(stage, "mlir_module_serialized") and hasattr(stage, "in_avals")


def _module_of_exported(exported: Any) -> bytes:
    import jax

    sizes = [size for array in exported.in_avals for size in getattr(array, "shape", ())]
    if not all(isinstance(size, int) for size in sizes):
        raise ArgumentError("the exported function has symbolic shapes: export it with fixed ones")
    arguments, named = jax.tree.unflatten(exported.in_tree, exported.in_avals)
    return module_of_lowered(jax.jit(exported.call).lower(*arguments, **named))


def _is_mlir(stage: object) -> bool:
    """Returns whether this is an MLIR module, as ``compiler_ir()`` returns it."""
    return type(stage).__name__ == "Module" and hasattr(stage, "operation")


def _module_of_mlir(module: object) -> bytes:
    from jaxlib import _jax

    return _serialized(_jax.mlir.mlir_module_to_xla_computation(str(module)))


def _named(given: object) -> str:
    kind = type(given)
    return f"a {kind.__module__}.{kind.__qualname__}"


def _refusal(given: object, stage: object) -> str:
    """Says what an object is, and what to do with it."""
    if isinstance(given, str):
        return _text_refusal(given)
    if isinstance(given, bytes | bytearray | memoryview):
        return f"bytes were given, {_EXPECTED}; use Graph.from_hlo_proto for a serialized module"
    if isinstance(given, PathLike):
        return f"a path was given, {_EXPECTED}; use Graph.from_file for a file"
    package = type(given).__module__.partition(".")[0]
    if package in _OTHER_LIBRARIES:
        return f"{_named(given)} was given: {_OTHER_LIBRARIES[package]}"
    if hasattr(stage, "runtime_executable") or hasattr(stage, "cost_analysis"):
        return (
            f"{_named(given)} was given, a compiled function, whose module is already optimized; "
            "pass the lowered function that it was compiled from"
        )
    if type(given).__name__ in ("ClosedJaxpr", "Jaxpr"):
        return f"a jaxpr was given, {_EXPECTED}"
    if isinstance(given, partial):
        return f"a functools.partial was given; {_LOWER}"
    if callable(getattr(given, "lower", None)) and not inspect.isclass(given):
        return f"{_named(given)} was given, a function that is not lowered: .lower(*arguments)"
    if inspect.isroutine(given) or inspect.isclass(given) or callable(given):
        return f"{shown(given)} was given, a function or class; {_LOWER}"
    return f"{shown(given)} was given, {_EXPECTED}"


def _text_refusal(given: str) -> str:
    if "HloModule" in given:
        return f"HLO text was given, {_EXPECTED}; use Graph.from_hlo_text for text"
    if "stablehlo." in given or "func.func" in given or "mhlo." in given:
        return (
            f"StableHLO text was given, {_EXPECTED}: pass the lowered function itself, or "
            "Graph.from_hlo_text(lowered.compiler_ir('hlo').as_hlo_text())"
        )
    return f"{shown(given)} was given, {_EXPECTED}; use Graph.from_file for a file"
