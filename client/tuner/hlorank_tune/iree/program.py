"""Programs that IREE compiles: StableHLO with arguments."""

import os
import re
from dataclasses import dataclass
from hashlib import sha256
from os import PathLike
from pathlib import Path

import numpy as np

from hlorank import GraphFileError
from hlorank.checks.files import decoded, file_content
from hlorank_tune.xla.program import Program, drawn

MLIR_SUFFIXES = (".mlir", ".stablehlo")
TYPES = {"f16": "float16", "f32": "float32", "f64": "float64", "bf16": "bfloat16", "i1": "bool"}
TYPES |= {f"{sign}i{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
"""What NumPy, or ``ml_dtypes``, calls the types of elements."""
_FUNCTION = re.compile(r"\bfunc (?:public )?@([\w$.]+)\((.*?)\)\s*(?:->|attributes|\{)", re.S)
"""A function, with its arguments."""
_TYPE_OF = re.compile(r"%\w+: (.+?)(?=, %|$)", re.S)
_BYTECODE = b"ML\xefR"
"""Begins a module that MLIR wrote as bytecode."""


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

        try:
            module = _jax.mlir.hlo_to_stablehlo(program.module.SerializeToString())
        except Exception as error:  # jaxlib raises its own types
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise GraphFileError(
                f"'{program.name}' cannot be converted to StableHLO for IREE: {reason}"
            ) from error
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
        content = file_content(path, "program")
        if content.startswith(_BYTECODE):
            raise GraphFileError(
                f"{path}: is MLIR bytecode, expected text: save str(lowered.compiler_ir())"
            )
        text = decoded(content, path, GraphFileError)
        functions = dict(_FUNCTION.findall(text))
        if "main" not in functions:
            others = list(functions)
            has = f", but {', '.join(others)}" if others else ""
            raise GraphFileError(
                f"{path}: contains no function main, which is what is tuned{has}; rename the "
                "function that the program enters"
            )
        random = np.random.default_rng(0)
        types = [each.partition(" {")[0] for each in _TYPE_OF.findall(functions["main"])]
        # Names of files are bytes, and that of a program is text, which reports print.
        name = os.fsencode(Path(path).stem).decode(errors="replace")
        return cls(name, text, tuple(_drawn(path, kind, random) for kind in types))


def _drawn(path: str | PathLike[str], kind: str, random: np.random.Generator) -> np.ndarray:
    found = re.fullmatch(r"tensor<((?:\d+x)*)([a-z]\w*)>", kind)
    if found is None:
        raise GraphFileError(
            f"{path}: main takes {kind}, expected arrays of StableHLO with fixed shapes"
        )
    if found[2] not in TYPES:
        known = ", ".join(TYPES)
        raise GraphFileError(f"{path}: main takes {kind}, expected elements of type {known}")
    shape = [int(size) for size in found[1].split("x")[:-1]]
    return drawn(TYPES[found[2]], shape, random)
