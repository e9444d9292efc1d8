"""Programs with chosen fusions on disk, to compile and run them again."""

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any

from hlorank.checks.errors import HlorankError
from hlorank_tune.measure.atomic_files import read_json, write_atomically, write_json
from hlorank_tune.measure.execute import Executable, backend, on_device
from hlorank_tune.measure.fusion.compilation import Compilation

MODULE = "fused.hlo_module.pb"
"""The HloModuleProto with the chosen fusions."""
DESCRIPTION = "fused.json"
"""The passes that are off, the version of jax, and what else is known of the program."""


class SavedProgramError(HlorankError):
    """A folder has no program with chosen fusions for this machine."""


def save(
    folder: str | PathLike[str], compilation: Compilation, more: Mapping[str, Any] | None = None
) -> None:
    """Writes a program into a folder, with more about it for people."""
    known = {"disabled_passes": compilation.disabled_passes, "jax": version("jax")}
    write_atomically(Path(folder) / MODULE, compilation.module)
    # The description comes last: if it exists, the folder is complete.
    write_json(Path(folder) / DESCRIPTION, {**(more or {}), **known})


def load(folder: str | PathLike[str], arguments: Sequence[Any] = ()) -> Executable:
    """Compiles the program of a folder for this machine, on one thread.

    Args:
        folder: The folder, such as ``--out`` of ``hlorank-tune --fusion``.
        arguments: Arrays in the order of ``jax.tree.leaves``, to which calls of the result are
            bound; its method ``run`` takes others.

    Raises:
        SavedProgramError: if the folder has no such program, or it was saved for another compiler.
    """
    try:
        description = read_json(Path(folder) / DESCRIPTION)
        module = (Path(folder) / MODULE).read_bytes()
        passes = description["disabled_passes"]
    except (OSError, ValueError, TypeError, KeyError) as error:
        message = f"{folder} contains no program with chosen fusions: {error}"
        raise SavedProgramError(message) from error
    found = description.get("jax")
    here = version("jax")
    if found != here or backend() != "xla:cpu":
        raise SavedProgramError(
            f"{folder} has fusions for xla:cpu of jax {found}, "
            f"but this is {backend()} of jax {here}"
        )
    return Compilation(module, passes).executable(on_device(arguments))
