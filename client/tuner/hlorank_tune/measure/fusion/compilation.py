"""A module with the passes that have to be off when it is compiled."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hlorank_tune.measure.execute import Executable
from hlorank_tune.measure.fusion.passes import CHOSEN_FUSION
from hlorank_tune.measure.fusion.proof import compiled_kernels, difference
from hlorank_tune.measure.schema import HloModuleProto


class OtherKernelsError(RuntimeError):
    """The compiler made other kernels than those of the module."""


@dataclass(frozen=True)
class Compilation:
    """A module, and how to compile it."""

    module: bytes
    """HloModuleProto"""
    disabled_passes: str
    """Names of HLO passes, separated by commas."""

    @classmethod
    def from_bytes(cls, content: bytes) -> "Compilation":
        """Reads what ``to_bytes`` returned."""
        passes, _, module = content.partition(b"\n")
        return cls(module, passes.decode())

    def to_bytes(self) -> bytes:
        """Returns both in one value: the same for the same module and passes."""
        return self.disabled_passes.encode() + b"\n" + self.module

    def executable(self, arguments: Sequence[Any]) -> Executable:
        """Compiles the module, and binds it to arguments, which are on the device.

        Raises:
            OtherKernelsError: if fusions were chosen, and the compiler did not keep them.
        """
        module = HloModuleProto.FromString(self.module)
        executable = Executable(module, arguments, self.disabled_passes)
        if self.disabled_passes == CHOSEN_FUSION:
            wanted = compiled_kernels(module)
            compiled = compiled_kernels(executable.optimized())
            if problem := difference(wanted, compiled):
                raise OtherKernelsError(f"the compiled kernels differ: {problem}")
        return executable
