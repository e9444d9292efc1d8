"""Reads measurements back from the folders that they were collected into."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from hlorank_tune.measure.atomic_files import read_json
from hlorank_tune.measure.schema import ModuleTuningData, TuningData

_MODULES: dict[str, Callable[[bytes], Sequence[Any]]] = {
    "fusion": lambda content: [ModuleTuningData.FromString(content)],
    "layout": lambda content: [ModuleTuningData.FromString(content)],
    "tile": lambda content: TuningData.FromString(content).modules,
}


def spread(runtimes: np.ndarray) -> float:
    """Returns the ratio of the 90th to the 10th percentile of run times."""
    low, high = np.percentile(runtimes, [10, 90])
    return float(high / low)


@dataclass(frozen=True)
class Measured:
    """One graph or kernel: its run times and its record."""

    runtimes: np.ndarray
    """Nanoseconds, i64 [configurations]."""
    record: dict[str, Any]

    @property
    def family(self) -> str:
        """The family of the graph."""
        return self.record["family"]

    @property
    def fastest(self) -> float:
        """The shortest run time, milliseconds."""
        return float(self.runtimes.min() / 1e6)

    @property
    def spread(self) -> float:
        """Ratio of the 90th to the 10th percentile of the run times."""
        return spread(self.runtimes)

    @property
    def default_over_best(self) -> float:
        """The default's run time divided by the shortest."""
        return self.record["default_over_best"]

    @property
    def tau(self) -> float:
        """Kendall's tau between the two passes; 0 if one is constant."""
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
        """The settings of all measurements in the folder."""
        return read_json(self.folder / "provenance.json")

    @cached_property
    def graphs(self) -> list[Measured]:
        """The complete measurements; a record without a tuning file is still being written."""
        return [self._read(file) for file in sorted(self.folder.glob("*.pb"))]

    @property
    def families(self) -> dict[str, list[Measured]]:
        """The graphs of each family, in alphabetical order."""
        names = sorted({graph.family for graph in self.graphs})
        return {name: [g for g in self.graphs if g.family == name] for name in names}

    def _read(self, file: Path) -> Measured:
        modules = _MODULES[self.provenance["task"]](file.read_bytes())
        times = [run.profile.compute_time_ns for module in modules for run in module.runs]
        return Measured(np.array(times, np.int64), read_json(file.with_suffix(".json")))


def measured_collections(data: Path) -> list[MeasuredCollection]:
    """Returns the non-empty collections in a folder and below it, named by relative path."""
    data = data.resolve()
    folders = sorted(path.parent for path in data.rglob("provenance.json"))
    named = [MeasuredCollection(path.relative_to(data.parent).as_posix(), path) for path in folders]
    return [collection for collection in named if collection.graphs]
