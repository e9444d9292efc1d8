"""Compiles programs in the measuring process. The parent process only names these classes."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


class ModuleCompiler:
    """Compiles an HloModuleProto, and binds it to the arguments of the search."""

    def __init__(self, arguments: Sequence[np.ndarray]):
        # Imported late: the parent process need not load jax.
        from hlorank_tune.measure.execute import on_device

        self._arguments = on_device(arguments)

    def compile(self, program: bytes) -> Callable[[], Sequence[Any]]:
        """Returns a function that runs the program to its end and returns the results."""
        from hlorank_tune.measure.execute import Executable
        from hlorank_tune.measure.schema import HloModuleProto

        return Executable(HloModuleProto.FromString(program), self._arguments)


class FusionCompiler:
    """Compiles a ``Compilation``, and binds it to the arguments of the search."""

    def __init__(self, arguments: Sequence[np.ndarray]):
        from hlorank_tune.measure.execute import on_device

        self._arguments = on_device(arguments)

    def compile(self, program: bytes) -> Callable[[], Sequence[Any]]:
        """Returns a function that runs the program to its end and returns the results."""
        from hlorank_tune.measure.fusion.compilation import Compilation

        return Compilation.from_bytes(program).executable(self._arguments)
