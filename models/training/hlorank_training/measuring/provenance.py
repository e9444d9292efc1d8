"""The provenance of measurements, as JSON files beside them."""

import os
import platform
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from hlorank_tune.measure.atomic_files import read_json, write_atomically, write_json
from hlorank_tune.measure.rounds import Protocol, Timing
from hlorank_tune.server import processor

PROVENANCE = "provenance.json"


@dataclass(frozen=True)
class Collection:
    """A folder of measurements of one task: a file per graph, with its record ``NAME.json``."""

    folder: Path
    task: str
    protocol: Protocol
    limits: Any
    source: str
    """Compiler and device of the programs, such as ``xla:cpu``."""
    packages: tuple[str, ...] = ("jax", "jaxlib")
    """Python packages whose versions are recorded."""
    suffix: str = ".pb"
    """Of the files."""

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / PROVENANCE
        self._refuse_another_source(path)
        write_json(path, self._provenance())

    def path(self, name: str) -> Path:
        """Returns the path of the tuning file of a graph or kernel."""
        return self.folder / f"{name}{self.suffix}"

    def has(self, name: str) -> bool:
        """Returns whether a graph or kernel was measured already."""
        return self.path(name).exists()

    def refuse(self, name: str, reason: str) -> None:
        """Notes why a graph is left out."""
        write_json(self._refusal(name), {"name": name, "reason": reason})

    def is_done(self, name: str) -> bool:
        """Returns whether a graph was measured or left out already."""
        return self.has(name) or self._refusal(name).exists()

    def _refusal(self, name: str) -> Path:
        return self.folder / f"{name}.refused.json"

    def _refuse_another_source(self, path: Path) -> None:
        """Raises if the folder has files of another source, since existing files are kept."""
        other = read_json(path)["source"] if path.exists() else self.source
        if other != self.source:
            raise RuntimeError(
                f"'{self.folder}' contains measurements of {other}; "
                f"choose another folder for {self.source}"
            )

    def _provenance(self) -> dict[str, Any]:
        return {
            "task": self.task,
            "processor": processor(),
            "python": platform.python_version(),
            "source": self.source,
            **{package: version(package) for package in self.packages},
            "threads": 1,
            "label": "minimum over all rounds of both passes, nanoseconds",
            "protocol": asdict(self.protocol),
            "limits": asdict(self.limits),
        }


_COMPILERS = {
    "xla": ("XLA", "of jax {jax}"),
    "iree": ("IREE", "{iree-base-compiler}"),
    "halide": ("Halide", "{halide}"),
    "tvm": ("TVM", "{apache-tvm}"),
}
"""The name of a compiler and its version, by the source of a collection."""


def targets_of(files: Iterable[Path]) -> list[dict[str, Any]]:
    """Returns the targets of a manifest: what the run times in these files were measured on.

    Folders without a known provenance have none.
    """
    provenances = [folder / PROVENANCE for folder in sorted({file.parent for file in files})]
    found = [_target(read_json(path)) for path in provenances if path.exists()]
    return [one for number, one in enumerate(found) if one and one not in found[:number]]


def _target(provenance: dict[str, Any]) -> dict[str, Any] | None:
    compiler = re.split("[: ]", provenance["source"])[0]
    if compiler not in _COMPILERS:
        return None
    name, version = _COMPILERS[compiler]
    threads = provenance["threads"]
    return {
        "hardware": provenance["processor"],
        "compiler": name,
        "version": version.format(**provenance),
        "flags": [f"{threads} thread" if threads == 1 else f"{threads} threads"],
    }


def record(
    collection: Collection,
    name: str,
    family: str,
    timing: Timing,
    details: dict[str, Any],
) -> None:
    """Writes the record of a measured graph or kernel; its tuning file is written afterwards."""
    label = timing.label()
    write_json(
        collection.folder / f"{name}.json",
        {
            "name": name,
            "family": family,
            "configurations": len(label),
            "default_over_best": float(label[0] / label.min()),
            "slowest_over_best": float(label.max() / label.min()),
            "tau_between_passes": timing.agreement(),
            "noise_between_passes": timing.noise(),
            "rounds": [len(timing.first), len(timing.second)],
            "rounds_repeated_under_load": timing.repeated,
            "rounds_kept_under_load": timing.loaded,
            "load_average_after": load_average(),
            **details,
        },
    )


def load_average() -> float:
    """Returns the load average over one minute."""
    return round(os.getloadavg()[0], 2)


def write_feature_graph(
    path: Path,
    feature_set: str,
    node_features: np.ndarray,
    edges: np.ndarray,
    config_features: np.ndarray,
    timing: Timing,
) -> None:
    """Writes the npz file of a measured graph of a feature set; run times are nanoseconds."""
    file = BytesIO()
    np.savez_compressed(
        file,
        feature_set=np.frombuffer(feature_set.encode(), np.uint8),
        node_features=node_features,
        edge_index=edges,
        config_features=config_features,
        config_runtime=timing.label(),
    )
    write_atomically(path, file.getvalue())
