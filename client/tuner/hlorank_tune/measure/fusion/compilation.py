"""Modules with the passes that are off when they are compiled: compiled, checked, and on disk."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from hlorank.checks.errors import HlorankError
from hlorank.checks.files import file_content
from hlorank_tune.measure.atomic_files import read_json, write_atomically, write_json
from hlorank_tune.measure.fusion.graph import FREE
from hlorank_tune.measure.host import TOLERANCE, Run
from hlorank_tune.measure.schema import HloModuleProto

if TYPE_CHECKING:  # needs jax
    from hlorank_tune.measure.execute import Executable

OptionValue = bool | int | str
"""The value of an option of the compiler."""

DEFAULT = "cpu-parallel-task-assigner"
"""The compiler as it is, but one thread computes each kernel."""
OWN_FUSION = f"dot-library-rewriter,{DEFAULT}"
"""The compiler's fusion alone, without the library of matrix kernels, which fuses too."""
CHOSEN_FUSION = f"fusion,{DEFAULT},layout-assignment"
"""Keeps the fusions of a module.

Layout assignment clears the layouts inside fusions, which the code generator needs. The pass
``fusion-wrapper`` stays on: without it, XLA computes wrong results.
"""
LOOPED = f"{CHOSEN_FUSION},while-loop-invariant-code-motion,cse,while-loop-simplifier"
"""Also keeps a loop that computes the same kernel in every iteration."""

MODULE = "fused.hlo_module.pb"
"""The HloModuleProto with the chosen fusions."""
DESCRIPTION = "fused.json"
"""The passes that are off, the version of jax, and what else is known of the program."""
_IGNORED = FREE | {"bitcast", "broadcast", "copy", "reshape", "slice", "transpose"}
"""Opcodes that ``write`` adds to keep layouts, or that the compiler adds or folds."""


class OtherKernelsError(RuntimeError):
    """The compiler made other kernels than those of the module."""


class SavedProgramError(HlorankError):
    """A folder has no program with chosen fusions for this machine."""


@dataclass(frozen=True)
class Compilation:
    """A module, and how to compile it."""

    module: bytes
    """HloModuleProto"""
    disabled_passes: str
    """Names of HLO passes, separated by commas, as ``xla_disable_hlo_passes`` takes them."""
    options: tuple[tuple[str, OptionValue], ...] = ()
    """Further options of the compiler."""

    def executable(self, arguments: Sequence[Any]) -> "Executable":
        """Compiles the module, and binds it to arguments, which are on the device.

        Raises:
            OtherKernelsError: if fusions were chosen, and the compiler did not keep them.
        """
        from hlorank_tune.measure.execute import Executable

        module = HloModuleProto.FromString(self.module)
        executable = Executable(module, arguments, self.disabled_passes, self.options)
        if self.disabled_passes == CHOSEN_FUSION:
            compiled = compiled_kernels(executable.optimized())
            if problem := difference(compiled_kernels(module), compiled):
                raise OtherKernelsError(f"the compiled kernels differ: {problem}")
        return executable

    def save(self, folder: str | PathLike[str], more: Mapping[str, Any] | None = None) -> None:
        """Writes the program into a folder, with more about it for people."""
        known = {"disabled_passes": self.disabled_passes, "jax": version("jax")}
        write_atomically(Path(folder) / MODULE, self.module)
        # The description comes last: if it exists, the folder is complete.
        write_json(Path(folder) / DESCRIPTION, {**(more or {}), **known})


def load(folder: str | PathLike[str], arguments: Sequence[Any] = ()) -> "Executable":
    """Compiles the program of a folder for this machine, on one thread.

    Args:
        folder: The folder, such as ``--out`` of ``hlorank-tune --fusion``.
        arguments: Arrays in the order of ``jax.tree.leaves``, to which calls of the result are
            bound; its method ``run`` takes others.

    Raises:
        SavedProgramError: if the folder has no such program, or it was saved for another compiler.
    """
    from hlorank_tune.measure.execute import backend, on_device

    try:
        module = file_content(Path(folder) / MODULE)
        description = read_json(Path(folder) / DESCRIPTION)
        passes = description["disabled_passes"]
    except (HlorankError, TypeError, KeyError) as error:
        reason = error if isinstance(error, HlorankError) else f"{DESCRIPTION} names no passes"
        message = f"{folder} contains no program with chosen fusions: {reason}"
        raise SavedProgramError(message) from error
    found = description.get("jax")
    here = version("jax")
    if found != here or backend() != "xla:cpu":
        raise SavedProgramError(
            f"{folder} has fusions for xla:cpu of jax {found}, "
            f"but this is {backend()} of jax {here}: load it with the former, or tune again"
        )
    return Compilation(module, passes).executable(on_device(arguments))


@dataclass(frozen=True)
class KernelSet:
    """The kernels of a program, as far as they are compared."""

    fusions: Counter[str]
    """The opcodes of a loop fusion's members, and how many fusions have these."""
    others: int
    """Number of kernels that are no fusion; a library may have replaced them."""


def compiled_kernels(module: Any) -> KernelSet:
    """Returns the kernels of an HloModuleProto with fusions."""
    computations = {c.id: c for c in module.computations}
    fusions: Counter[str] = Counter()
    others = 0
    for instruction in computations[module.entry_computation_id].instructions:
        if instruction.opcode == "fusion" and instruction.fusion_kind == "kLoop":
            body = computations[instruction.called_computation_ids[0]]
            opcodes = sorted(i.opcode for i in body.instructions if i.opcode not in _IGNORED)
            fusions[",".join(opcodes)] += 1
        elif instruction.opcode not in FREE | {"bitcast", "copy"}:
            others += 1
    return KernelSet(fusions, others)


def difference(wanted: KernelSet, compiled: KernelSet) -> str:
    """Returns how the compiled kernels differ; empty if they are those that were wanted."""
    missing = wanted.fusions - compiled.fusions
    added = compiled.fusions - wanted.fusions
    # The compiler wraps a kernel that is no fusion, such as a gather, into one of its own.
    wrapped = sum(count for signature, count in added.items() if "," not in signature)
    if not missing and wrapped == added.total() == wanted.others - compiled.others:
        return ""
    return (
        f"missing fusions {dict(missing)}, added fusions {dict(added)}, "
        f"{compiled.others} other kernels instead of {wanted.others}"
    )


class _Run(Run):
    def __init__(self, executable: "Executable"):
        self._executable = executable

    def results(self) -> list[Any]:
        return self._executable()

    def __call__(self) -> None:
        self._executable()


@dataclass(frozen=True)
class Compiling:
    """Compiles modules in the process that measures them, and binds them to arguments."""

    arguments: Sequence[Any]
    """Arrays; always the same in one process."""
    tolerance: float = TOLERANCE
    patience: ClassVar[float] = 180.0
    slow: ClassVar[float] = 3.0

    def load(self, program: Compilation) -> Run:
        """Compiles a program, unless the process has it from an earlier request."""
        from hlorank_tune.measure.execute import on_device

        if not _on_device:
            _on_device.extend(on_device(self.arguments))
        return _loaded(program)

    def failure(self, error: Exception, is_loaded: bool) -> str | None:
        """Returns what an error of XLA says; one of Python is the harness's."""
        of_python = RecursionError | NotImplementedError
        if not isinstance(error, RuntimeError) or isinstance(error, of_python):
            return None
        return "crash" if is_loaded else "compile"


_on_device: list[Any] = []
"""The arguments, in the process that measures."""


@lru_cache(16)
def _loaded(program: Compilation) -> Run:
    # Every batch has the reference, and the parts of a confirmation measure the same programs.
    return _Run(program.executable(_on_device))
