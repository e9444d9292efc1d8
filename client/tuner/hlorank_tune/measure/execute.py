"""Lowers JAX functions to HLO modules, and compiles and runs those.

They run on the first JAX device, a CPU or a GPU.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend import core as jax_core

from hlorank.checks.errors import HlorankError
from hlorank_tune.measure.schema import HloModuleProto, strip

try:
    from jaxlib import _hlo, _jax

    _NEEDED = (
        _hlo.HloModule.from_serialized_hlo_module_proto,
        _hlo.XlaComputation,
        _jax.mlir.xla_computation_to_mlir_module,
        _jax.CompileOptions,
        _jax.DeviceList,
    )
except (ImportError, AttributeError) as error:
    # Compiling an HLO module is no public part of jax, so any version may lack one of these.
    raise HlorankError(
        f"jax {jax.__version__} does not compile HLO modules as hlorank-tune knows it; install "
        "another version, of which 0.10.2 and 0.12.0 were tried"
    ) from error


# The calling thread runs the program: without a hand-over to another thread, times vary less.
jax.config.update("jax_cpu_enable_async_dispatch", False)


class Executable:
    """A compiled module bound to its arguments; call it to run it to the end."""

    def __init__(
        self,
        module,
        arguments: Sequence[Any],
        disabled_passes: str = "",
        options: Sequence[tuple[str, Any]] = (),
    ):
        """``disabled_passes`` are names of HLO passes, separated by commas; ``options`` are names
        and values of further ones."""
        parsed = _hlo.HloModule.from_serialized_hlo_module_proto(module.SerializeToString())
        computation = _hlo.XlaComputation(parsed.as_serialized_hlo_module_proto())
        program = _jax.mlir.xla_computation_to_mlir_module(computation)
        compile_options = _jax.CompileOptions()
        compile_options.env_option_overrides = list(options)
        debug_options = compile_options.executable_build_options.debug_options
        debug_options.xla_disable_hlo_passes = disabled_passes
        devices = jax.devices()[:1]
        self._loaded = devices[0].client.compile_and_load(
            program, _jax.DeviceList(tuple(devices)), compile_options
        )
        self._arguments = list(arguments)

    def __call__(self) -> list[Any]:
        """Runs the program to its end and returns the results."""
        return self.run(self._arguments)

    def run(self, arguments: Sequence[Any]) -> list[Any]:
        """Runs the program with other arguments, which are on the device."""
        results = self._loaded.execute_sharded(list(arguments))
        arrays = [shards[0] for shards in results.disassemble_into_single_device_arrays()]
        for array in arrays:
            array.block_until_ready()
        return arrays

    def optimized(self) -> Any:
        """Returns the HloModuleProto after all passes."""
        (module,) = self._loaded.hlo_modules()
        return HloModuleProto.FromString(module.as_serialized_hlo_module_proto())


def on_device(arguments: Sequence[np.ndarray]) -> list[Any]:
    """Copies arguments to the device."""
    # Without x64, JAX would convert 64-bit numbers to 32 bits.
    with jax.enable_x64(True):
        return [jax.device_put(argument) for argument in arguments]


def backend() -> str:
    """Returns the name of the compiler and device, such as ``xla:cpu``."""
    return f"xla:{jax.devices()[0].platform}"


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
