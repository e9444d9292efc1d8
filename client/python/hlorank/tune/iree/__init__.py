"""Tunes the tiles of a program's dispatches for IREE, and writes a tuning spec.

>>> from hlorank.tune import search
>>> from hlorank.tune.iree import IreeCompiler, StablehloProgram
>>> program = StablehloProgram.from_file("model.mlir")
>>> print(search(IreeCompiler(program), "127.0.0.1:7070", "tuned/model"))
"""

from hlorank.tune.iree.compiler import SPEC_FILE, IreeCompiler, TuneError
from hlorank.tune.iree.modules import program_modules
from hlorank.tune.iree.program import StablehloProgram

__all__ = ["SPEC_FILE", "IreeCompiler", "StablehloProgram", "TuneError", "program_modules"]
