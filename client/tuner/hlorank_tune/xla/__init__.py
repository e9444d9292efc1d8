"""Tunes programs for XLA: their layouts, and on a CPU its kernels and compile options.

>>> from hlorank_tune import search
>>> from hlorank_tune.xla import LayoutCompiler, Program
>>> program = Program.from_function(step, *arguments)
>>> print(search(LayoutCompiler(program), "127.0.0.1:7070", "tuned/step"))
"""

from hlorank_tune.xla.compiler import FusionCompiler, LayoutCompiler, OptionCompiler
from hlorank_tune.xla.program import Program

__all__ = ["FusionCompiler", "LayoutCompiler", "OptionCompiler", "Program"]
