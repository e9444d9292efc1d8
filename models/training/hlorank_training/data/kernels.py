"""Measured kernels of programs before fusion, as a model sees them, and the programs they make."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from hlorank_tune.measure.atomic_files import read_json
from hlorank_tune.measure.schema import ModuleTuningData
from tqdm import tqdm

from hlorank_training.data.featurize import FEATURES_FOLDER, feature_digest, run
from hlorank_training.data.prepare import shuffled
from hlorank_training.measuring.kernel_times import ProgramKernels, label

MAX_NODES = 512
"""Maximum nodes of a kernel; larger ones are neither served nor trained on."""
LONG = 5_000.0
"""Nanoseconds from which on kernels are judged, as in Kaufman et al. (section 5.2)."""


@dataclass(frozen=True)
class MeasuredKernel:
    """One distinct kernel."""

    digest: str
    """Identifies the module that was compiled and measured."""
    opcode: np.ndarray
    """i64 [n]"""
    features: np.ndarray
    """f32 [n, 140], raw"""
    edges: np.ndarray
    """i64 [m, 2], from consumer to producer"""
    nanoseconds: float
    """NaN if it was not timed, or is too short"""
    families: frozenset[str]
    """The families of the programs that run it."""

    @property
    def is_known(self) -> bool:
        """Whether it has a run time and may be trained on."""
        return self.nanoseconds > 0 and len(self.opcode) <= MAX_NODES


@dataclass(frozen=True)
class FusedProgram:
    """A program, and the run times of its configurations without the call."""

    name: str
    family: str
    file: Path
    runs: tuple[np.ndarray, ...]
    """The kernels of each configuration, as numbers of ``KernelData.kernels``, by root."""
    passes: np.ndarray
    """f64 [2, c], nanoseconds"""

    @property
    def nanoseconds(self) -> np.ndarray:
        """The minimum over the passes: f64 [c]."""
        return self.passes.min(0)


@dataclass(frozen=True)
class KernelData:
    """All kernels of a collection, each once, and its programs."""

    feature_digest: str
    kernels: tuple[MeasuredKernel, ...]
    programs: tuple[FusedProgram, ...]

    @property
    def families(self) -> list[str]:
        """The families of the programs, sorted."""
        return sorted({program.family for program in self.programs})

    def nanoseconds(self) -> np.ndarray:
        """Returns the run time of every kernel: f64 [k]."""
        return np.array([kernel.nanoseconds for kernel in self.kernels])

    def seen(self, held_out: Sequence[str]) -> np.ndarray:
        """Returns the numbers of the kernels with a run time that no held-out family runs."""
        return self._known(held_out, is_held_out=False)

    def unseen(self, held_out: Sequence[str]) -> np.ndarray:
        """Returns the numbers of the kernels with a run time that a held-out family runs."""
        return self._known(held_out, is_held_out=True)

    def _known(self, held_out: Sequence[str], is_held_out: bool) -> np.ndarray:
        known = (n for n, kernel in enumerate(self.kernels) if kernel.is_known)
        others = (n for n in known if self.kernels[n].families.isdisjoint(held_out) != is_held_out)
        return np.array(list(others), np.int64)


FOLDS = 5


def family_folds(families: Sequence[str]) -> list[tuple[str, ...]]:
    """Divides families into folds by the SHA-256 of their names, so that nobody chooses.

    The first fold is held out from the model that ships.
    """
    order = shuffled(sorted(families))
    return [tuple(sorted(order[fold::FOLDS])) for fold in range(min(FOLDS, len(order)))]


def read_kernels(data: Path, hlorank: Path) -> KernelData:
    """Reads a folder of ``collect fusion``, whose kernels ``hlorank`` featurizes once."""
    digest = feature_digest(hlorank)
    folder = data / FEATURES_FOLDER / digest[:16]
    records = sorted((data / "kernels").glob("*.json"))
    if not records:
        raise RuntimeError(f"'{data}' contains no measured fusions; collect some, or unpack them")
    number: dict[str, int] = {}
    known: dict[str, tuple[Any, ...]] = {}
    families: dict[str, set[str]] = {}
    programs = []
    for path in tqdm(records, desc="featurize"):
        record = read_json(path)
        file = data / "programs" / f"{path.stem}.pb"
        kernels = ProgramKernels(ModuleTuningData.FromString(file.read_bytes()))
        arrays = _features(file, kernels, folder, hlorank)
        numbers = []
        failed = set()
        for position, (one, measured) in enumerate(zip(arrays, record["kernels"], strict=True)):
            identity = measured["digest"]
            numbers.append(number.setdefault(identity, len(number)))
            known.setdefault(identity, (*one, label(measured) or np.nan))
            families.setdefault(identity, set()).add(record["family"])
            if "error" in measured:
                failed.add(position)
        timed = [n for n, run in enumerate(kernels.configurations) if not failed.intersection(run)]
        measured = read_json(file.with_suffix(".json"))
        passes = np.array([measured["first_pass"], measured["second_pass"]], np.float64)
        passes = passes[:, timed] - measured["call_nanoseconds"]
        runs = tuple(np.array([numbers[k] for k in kernels.configurations[n]]) for n in timed)
        programs.append(FusedProgram(record["name"], record["family"], file, runs, passes))
    every = (MeasuredKernel(one, *known[one], frozenset(families[one])) for one in number)
    return KernelData(digest, tuple(every), tuple(programs))


def _features(
    file: Path, kernels: ProgramKernels, folder: Path, hlorank: Path
) -> list[tuple[np.ndarray, ...]]:
    """Returns opcodes, features and edges of every kernel of a program."""
    cache = folder / f"{file.stem}.npz"
    if not cache.exists() or cache.stat().st_mtime < file.stat().st_mtime:
        folder.mkdir(parents=True, exist_ok=True)
        every = [featurized(module, hlorank) for module in kernels.plain_modules()]
        joined = [np.concatenate(parts) for parts in zip(*every, strict=True)]
        ends = [np.cumsum([len(one[part]) for one in every]) for part in (0, 2)]
        names = ("opcode", "features", "edges", "node_ends", "edge_ends")
        np.savez_compressed(cache, **dict(zip(names, [*joined, *ends], strict=True)))
    with np.load(cache) as arrays:
        opcode, features, edges = (arrays[name] for name in ("opcode", "features", "edges"))
        nodes = arrays["node_ends"][:-1]
        edge_ends = arrays["edge_ends"][:-1]
    parts = np.split(opcode, nodes), np.split(features, nodes), np.split(edges, edge_ends)
    return list(zip(*parts, strict=True))


def featurized(module: Any, hlorank: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns opcodes i64 [n], features f32 [n, 140] and edges i64 [m, 2] of a plain kernel."""
    with TemporaryDirectory() as folder:
        kernel = Path(folder, "kernel.pb")
        arrays = Path(folder, "kernel.npz")
        kernel.write_bytes(module.SerializeToString())
        run(hlorank, "graph", "features", str(kernel), "--task", "tile", "--out", str(arrays))
        with np.load(arrays) as found:
            return (
                found["node_opcode"].astype(np.int64),
                found["node_feat"].astype(np.float32),
                found["edge_index"].astype(np.int64).reshape(-1, 2),
            )
