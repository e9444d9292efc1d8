"""Programs that IREE compiles: StableHLO with arguments."""

import re
from dataclasses import dataclass
from hashlib import sha256
from os import PathLike
from pathlib import Path

import numpy as np

from hlorank.errors import GraphFileError
from hlorank.tune.program import Program

MLIR_SUFFIXES = (".mlir", ".stablehlo")
_TYPES = {"f16": "f2", "f32": "f4", "f64": "f8", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8"}
_TYPES |= {"ui8": "u1", "ui16": "u2", "ui32": "u4", "ui64": "u8", "i1": "?"}


@dataclass(frozen=True, eq=False)
class StablehloProgram:
    """A program as StableHLO, with the arguments of its function ``main``."""

    name: str
    text: str
    arguments: tuple[np.ndarray, ...]

    @property
    def identity(self) -> str:
        """A digest of the program."""
        return sha256(self.text.encode()).hexdigest()

    @classmethod
    def from_program(cls, program: Program) -> "StablehloProgram":
        """Converts the HLO module of a program."""
        from jax._src.interpreters.mlir import make_ir_context
        from jaxlib import _jax
        from jaxlib.mlir import ir

        module = _jax.mlir.hlo_to_stablehlo(program.module.SerializeToString())
        with make_ir_context():
            text = str(ir.Module.parse(module))
        arguments = tuple(np.asarray(argument) for argument in program.arguments)
        return cls(program.name, text, arguments)

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> "StablehloProgram":
        """Reads StableHLO text, and draws arguments.

        Raises:
            GraphFileError: if the function ``main`` is missing, or takes something else than
                arrays of fixed shapes.
        """
        text = Path(path).read_text(encoding="utf-8")
        found = re.search(
            r"func\.func (?:public )?@main\((.*?)\)\s*(?:->|attributes|\{)", text, re.S
        )
        if found is None:
            raise GraphFileError(f"{path}: contains no function main")
        random = np.random.default_rng(0)
        types = re.findall(r"%\w+: (\S+?)(?:,|\s|$)", found[1] + " ")
        return cls(Path(path).stem, text, tuple(_drawn(path, kind, random) for kind in types))


def _drawn(path: str | PathLike[str], kind: str, random: np.random.Generator) -> np.ndarray:
    found = re.fullmatch(r"tensor<((?:\d+x)*)(\w+)>", kind)
    if found is None or found[2] not in _TYPES:
        raise GraphFileError(f"{path}: main takes {kind}, expected arrays of fixed shapes")
    shape = [int(size) for size in found[1].split("x")[:-1]]
    dtype = np.dtype(_TYPES[found[2]])
    if dtype.kind == "f":
        return np.asarray(0.1 * random.standard_normal(shape)).astype(dtype)
    return np.asarray(random.integers(0, 2, shape)).astype(dtype)
