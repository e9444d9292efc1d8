"""Programs with their arguments, and what is chosen of them: vectors of small numbers."""

import re
from abc import abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from os import PathLike
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from hlorank import Graph, GraphFileError
from hlorank_tune.measure.fusion.compilation import Compilation
from hlorank_tune.measure.schema import HloModuleProto, ModuleTuningData
from hlorank_tune.subject import Subject

Candidates = np.ndarray
"""i16 [candidates, numbers]"""

_TYPES = ("bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)))
_TYPES += ("float16", "float32", "float64")
"""NumPy's names of the values of xla.PrimitiveType from 1 on."""
_BFLOAT16 = 16


@dataclass(frozen=True, eq=False)
class Program:
    """A program whose layouts are tuned: its HLO module before optimization, and arguments."""

    name: str
    module: Any
    """HloModuleProto; layouts are chosen for the nodes of its entry computation"""
    arguments: Sequence[np.ndarray]
    """In the order of the entry computation's parameters."""

    @classmethod
    def from_function(
        cls, function: Callable[..., Any], *arguments: Any, name: str | None = None
    ) -> "Program":
        """Lowers a function that JAX can trace; arguments are arrays or trees of arrays."""
        from hlorank_tune.measure.execute import flat_arguments, lower

        name = name or getattr(function, "__name__", "program")
        return cls(name, lower(name, function, arguments), flat_arguments(arguments))

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> "Program":
        """Reads a program from a file, and generates random arguments.

        The file holds an HLO module before optimization: a serialized ``HloModuleProto`` or
        ``HloProto``, HLO text, or TpuGraphs' ``ModuleTuningData``.

        Raises:
            GraphFileError: for other formats, and for parameters that are not arrays of numbers.
        """
        graph = Graph.from_file(path).whole()
        if graph.hlo_text:
            module = _module_of_text(path, graph.hlo_text)
        else:
            module = repeatable(_module_of_bytes(path, graph.hlo_module))
        try:
            arguments = random_arguments(module)
        except GraphFileError as error:
            raise GraphFileError(f"{path}: {error}") from error
        return cls(module.name, module, arguments)


class Problem(Subject[np.ndarray]):
    """A user's program and its candidates, which are compiled in the measuring process."""

    graph: Graph
    space: Any
    """Has the candidate of the untuned program as ``default``, and draws and mutates candidates."""
    clock: str
    """What run times are: ``monotonic`` or ``process``, as in a measurement's protocol."""

    def __init__(self, program: "Program", disabled_passes: str = ""):
        """``disabled_passes`` are those that are off when the program itself is compiled."""
        self.arguments = [np.asarray(argument) for argument in program.arguments]
        self._module = repeatable(program.module)
        self.reference_program = compilation(self._module, disabled_passes)
        """The user's program."""

    @property
    def reference(self) -> np.ndarray:
        """The program itself."""
        return self.space.default

    @abstractmethod
    def program(self, candidate: np.ndarray) -> Compilation:
        """Returns a candidate's program; raises if there is none."""

    def identity(self) -> str:
        """Returns a digest of everything that the results depend on."""
        return sha256(self.reference_program.module).hexdigest()

    def key(self, candidate: np.ndarray) -> Hashable:
        """Returns the numbers as bytes."""
        return candidate.tobytes()


def compilation(module: Any, disabled_passes: str = "") -> Compilation:
    """Returns an HloModuleProto with the passes that are off when it is compiled."""
    return Compilation(module.SerializeToString(deterministic=True), disabled_passes)


def random_arguments(module: Any) -> list[np.ndarray]:
    """Draws arguments for the parameters of a module: the same at every call."""
    random = np.random.default_rng(0)
    entry = next((c for c in module.computations if c.id == module.entry_computation_id), None)
    if entry is None:
        raise GraphFileError(f"the module has no computation {module.entry_computation_id}")
    parameters = [i for i in entry.instructions if i.opcode == "parameter"]
    parameters.sort(key=lambda parameter: parameter.parameter_number)
    return [_argument(parameter, random) for parameter in parameters]


def _argument(parameter: Any, random: np.random.Generator) -> np.ndarray:
    kind = parameter.shape.element_type
    if kind != _BFLOAT16 and not 1 <= kind <= len(_TYPES):
        raise GraphFileError(
            f"parameter '{parameter.name}' is not an array of floats, integers or booleans "
            f"(xla.PrimitiveType {kind}); such a program is only tuned from Python"
        )
    name = "bfloat16" if kind == _BFLOAT16 else _TYPES[kind - 1]
    return drawn(name, list(parameter.shape.dimensions), random)


def data_type(kind: Any) -> np.dtype:
    """Returns a type of arrays, which may have the name that ``ml_dtypes`` gives it."""
    import ml_dtypes  # adds bfloat16 to NumPy, which knows it as void; a dependency of jax

    return np.dtype(ml_dtypes.bfloat16 if kind == "bfloat16" else kind)


def drawn(kind: Any, shape: Sequence[int], random: np.random.Generator) -> np.ndarray:
    """Draws an array of a type that NumPy or ``ml_dtypes`` names."""
    dtype = data_type(kind)
    if dtype.kind in "fV":
        return np.asarray(0.1 * random.standard_normal(shape)).astype(dtype)
    # Small enough for an index into most arrays.
    return np.asarray(random.integers(0, 2, shape)).astype(dtype)


def _module_of_bytes(path: str | PathLike[str], content: bytes) -> Any:
    """Parses a module, or the first field of a message around it."""
    for parse in (HloModuleProto.FromString, lambda one: ModuleTuningData.FromString(one).module):
        try:
            module = parse(content)
        except DecodeError:
            continue
        if module.computations:
            return module
    raise GraphFileError(f"{path}: contains no HLO module")


def _module_of_text(path: str | PathLike[str], text: str) -> Any:
    from jaxlib import _hlo

    try:
        parsed = _hlo.hlo_module_from_text(text)
    except Exception as error:  # jaxlib raises its own types
        found = re.search(r"parsing ([0-9]+):([0-9]+): error: (.*)", str(error))
        reason = f", line {found[1]}, column {found[2]}: it {found[3]}" if found else ""
        if "func.func" in text:
            reason = ": it is MLIR, which hlorank-tune iree takes if it is StableHLO"
        message = f"{path}: XLA cannot parse the text as an HLO module{reason}"
        raise GraphFileError(message) from error
    return repeatable(HloModuleProto.FromString(parsed.as_serialized_hlo_module_proto()))


def repeatable(module: Any) -> Any:
    """Returns a copy that is equal in every process and can run repeatedly on its arguments."""
    copy = HloModuleProto.FromString(module.SerializeToString())
    # Prevents results from reusing the memory of arguments.
    copy.ClearField("input_output_alias")
    copy.ClearField("buffer_donor")
    # The id is a counter of the process.
    copy.ClearField("id")
    return copy
