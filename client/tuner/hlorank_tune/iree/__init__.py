"""IREE's CPU backend as a compiler to tune: the tiles of a program's dispatches, as a tuning spec.

Needs ``pip install 'hlorank-tune[iree]'``. A *dispatch* is a kernel that IREE forms of a program.
Its *root* is the operation whose ``lowering_config`` decides how the dispatch is tiled.

>>> from hlorank_tune import search
>>> from hlorank_tune.iree import IreeCompiler, StablehloProgram
>>> program = StablehloProgram.from_file("model.mlir")
>>> print(search(IreeCompiler(program), "127.0.0.1:7070", "tuned/model"))
"""

from hlorank_tune.iree.program import StablehloProgram
from hlorank_tune.iree.tile_compiler import SPEC_FILE, IreeCompiler

__all__ = ["SPEC_FILE", "IreeCompiler", "StablehloProgram"]
