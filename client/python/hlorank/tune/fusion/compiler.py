"""Compiles programs with chosen fusions in the measuring process."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


class FusionCompiler:
    """Compiles a ``Compilation``, and binds it to the arguments of the search."""

    def __init__(self, arguments: Sequence[np.ndarray]):
        # Imported late: the parent process only names this class.
        from hlorank.measure.execute import on_device

        self._arguments = on_device(arguments)

    def compile(self, program: bytes) -> Callable[[], Sequence[Any]]:
        """Returns a function that runs the program to its end and returns the results."""
        from hlorank.measure.fusion.compilation import Compilation

        return Compilation.from_bytes(program).executable(self._arguments)
