"""Compiles HLO modules in the measuring process."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


class XlaCompiler:
    """Compiles an HloModuleProto, and binds it to the arguments of the search."""

    def __init__(self, arguments: Sequence[np.ndarray]):
        # Imported late: the parent process only names this class.
        from hlorank.measure.execute import on_device

        self._arguments = on_device(arguments)

    def compile(self, program: bytes) -> Callable[[], Sequence[Any]]:
        """Returns a function that runs the program to its end and returns the results."""
        from hlorank.measure.execute import Executable
        from hlorank.measure.schema import HloModuleProto

        return Executable(HloModuleProto.FromString(program), self._arguments)
