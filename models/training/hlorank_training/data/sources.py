"""The measured graphs that lie in a folder: collected here, or TpuGraphs' own files.

A folder of TpuGraphs, ``{train,valid,test}/NAME.{npz,pb}``, says which graphs train. What
``collect`` wrote has a record beside every file instead, with the graph's family and noise.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hlorank.measure.atomic_files import read_json

from hlorank_training.data.featurize import run

PARTS = {"train": "train", "valid": "validation", "test": "test"}
"""The folders of TpuGraphs, and what their graphs are for."""
FEATURES_FOLDER = "features"
_SUFFIXES = (".pb", ".npz")


@dataclass(frozen=True)
class Source:
    """One graph with its measured configurations."""

    name: str
    """The path below the data folder without its suffix; unique."""
    file: Path
    module: int | None
    """Which graph of a file that holds several."""
    graph: str
    """What collections of the same graph share, so that one part of a split holds them all."""
    family: str
    part: str | None
    """``train``, ``validation`` or ``test`` where the folders tell."""
    noise_ceiling: float | None
    """Kendall's tau between two measuring passes, where it was measured."""


def sources(data: Path, hlorank: Path) -> list[Source]:
    """Every graph of a folder, or of one file, in the order of their names."""
    found = [source for file in _files(data) for source in _of_file(file, data, hlorank)]
    if not found:
        raise RuntimeError(
            f"'{data}' holds no measured graphs (.pb or .npz); collect some, unpack "
            "measured.tar.xz, or give a folder of TpuGraphs"
        )
    return found


def _files(data: Path) -> list[Path]:
    if data.is_file():
        return [data]
    below = [path for path in data.rglob("*") if path.suffix in _SUFFIXES]
    return sorted(p for p in below if FEATURES_FOLDER not in p.relative_to(data).parts)


def _of_file(file: Path, data: Path, hlorank: Path) -> Iterator[Source]:
    base = data.parent if data.is_file() else data
    name = file.relative_to(base).with_suffix("").as_posix()
    record = file.with_suffix(".json")
    if record.exists():
        content = read_json(record)
        ceiling = content["tau_between_passes"]
        yield Source(name, file, None, file.stem, content["family"], None, ceiling)
        return
    folders = [PARTS[part] for part in file.relative_to(base).parts[:-1] if part in PARTS]
    part = folders[-1] if folders else None
    modules = _modules(file, hlorank)
    for module in modules:
        several = len(modules) > 1
        graph = f"{file.stem}.{module}" if several else file.stem
        full = f"{name}.{module}" if several else name
        yield Source(full, file, module, graph, _family(file.stem), part, None)


def _family(stem: str) -> str:
    """A kernel file of TpuGraphs is ``PROGRAM_HASH``; a layout file is named by its program."""
    program, _, digest = stem.rpartition("_")
    return program if program and len(digest) >= 16 else stem


def _modules(file: Path, hlorank: Path) -> list[int]:
    """The graphs of a file that have configurations to rank."""
    if file.suffix == ".npz":
        return [0]
    shown = json.loads(run(hlorank, "graph", "inspect", "--json", str(file)))
    return [graph["module"] for graph in shown["graphs"] if graph["configurations"] > 1]
