"""Measurements read back from the folders that they were collected into."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from hlorank.measure.atomic_files import read_json
from hlorank.measure.schema import ModuleTuningData, TuningData

_MODULES: dict[str, Callable[[bytes], Sequence[Any]]] = {
    "layout": lambda content: [ModuleTuningData.FromString(content)],
    "tile": lambda content: TuningData.FromString(content).modules,
}


def spread(runtimes: np.ndarray) -> float:
    """90th over 10th percentile of run times."""
    low, high = np.percentile(runtimes, [10, 90])
    return float(high / low)


@dataclass(frozen=True)
class Measured:
    """One graph or kernel: its run times and the record beside them."""

    runtimes: np.ndarray
    """Nanoseconds, i64 [configurations]."""
    record: dict[str, Any]

    @property
    def family(self) -> str:
        """The family that the graph belongs to."""
        return self.record["family"]

    @property
    def fastest(self) -> float:
        """The shortest run time, milliseconds."""
        return float(self.runtimes.min() / 1e6)

    @property
    def spread(self) -> float:
        """90th over 10th percentile of the run times."""
        return spread(self.runtimes)

    @property
    def default_over_best(self) -> float:
        """The default's run time over the shortest one."""
        return self.record["default_over_best"]

    @property
    def tau(self) -> float:
        """Kendall's tau between the two passes; 0 where one is constant."""
        return float(np.nan_to_num(self.record["tau_between_passes"]))

    @property
    def noise(self) -> float:
        """Median relative difference between the passes."""
        return self.record["noise_between_passes"]


@dataclass(frozen=True)
class MeasuredCollection:
    """A folder that holds measurements and their provenance."""

    name: str
    folder: Path

    @cached_property
    def provenance(self) -> dict[str, Any]:
        """How all of the folder was measured."""
        return read_json(self.folder / "provenance.json")

    @cached_property
    def graphs(self) -> list[Measured]:
        """What is complete; a record without its tuning file is still being written."""
        return [self._read(file) for file in sorted(self.folder.glob("*.pb"))]

    @property
    def families(self) -> dict[str, list[Measured]]:
        """The graphs of each family, families in the order of the alphabet."""
        names = sorted({graph.family for graph in self.graphs})
        return {name: [g for g in self.graphs if g.family == name] for name in names}

    def _read(self, file: Path) -> Measured:
        modules = _MODULES[self.provenance["task"]](file.read_bytes())
        times = [run.profile.compute_time_ns for module in modules for run in module.runs]
        return Measured(np.array(times, np.int64), read_json(file.with_suffix(".json")))


def measured_collections(data: Path) -> list[MeasuredCollection]:
    """The collections at or under a folder that hold anything yet, named from that folder on."""
    data = data.resolve()
    folders = sorted(path.parent for path in data.rglob("provenance.json"))
    named = [MeasuredCollection(path.relative_to(data.parent).as_posix(), path) for path in folders]
    return [collection for collection in named if collection.graphs]
