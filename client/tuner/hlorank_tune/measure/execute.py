"""Compiles HLO modules for the first JAX device, a CPU or a GPU, and runs them."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from hlorank.checks.errors import HlorankError

try:
    from jaxlib import _hlo, _jax
except ImportError as error:
    # Compiling an HLO module is no public part of jax.
    raise HlorankError(
        f"jax {jax.__version__} does not compile HLO modules as hlorank-tune knows it: {error}; "
        "install another version, of which 0.10.2 was tried"
    ) from error

from hlorank_tune.measure.schema import HloModuleProto

# The calling thread runs the program: without a hand-over to another thread, times vary less.
jax.config.update("jax_cpu_enable_async_dispatch", False)


class Executable:
    """A compiled module bound to its arguments; call it to run it to the end."""

    def __init__(self, module, arguments: Sequence[Any], disabled_passes: str = ""):
        """``disabled_passes`` are names of HLO passes, separated by commas."""
        parsed = _hlo.HloModule.from_serialized_hlo_module_proto(module.SerializeToString())
        computation = _hlo.XlaComputation(parsed.as_serialized_hlo_module_proto())
        program = _jax.mlir.xla_computation_to_mlir_module(computation)
        options = _jax.CompileOptions()
        debug_options = options.executable_build_options.debug_options
        debug_options.xla_disable_hlo_passes = disabled_passes
        devices = jax.devices()[:1]
        self._loaded = devices[0].client.compile_and_load(
            program, _jax.DeviceList(tuple(devices)), options
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
