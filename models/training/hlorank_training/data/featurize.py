"""Finds the measured graphs of a folder, our own collections or TpuGraphs' files, and featurizes
them with the program ``hlorank``, which has the server's featurizer.

TpuGraphs' folders, ``{train,valid,test}/NAME.{npz,pb}``, define the split. In our own collections,
every file has a record with the graph's family and noise.
"""

import json
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from hlorank_tune.measure.atomic_files import read_json
from tqdm import tqdm

PARTS = {"train": "train", "valid": "validation", "test": "test"}
"""TpuGraphs' folders, and the parts of the split that they are."""
FEATURES_FOLDER = "features"


@dataclass(frozen=True)
class Source:
    """One graph with its measured configurations."""

    name: str
    """The path below the data folder without its suffix; unique."""
    file: Path
    module: int | None
    """Index of the graph in the file; None for a file with one graph."""
    graph: str
    """Name of the graph, which all its collections share; they belong to one part of a split."""
    family: str
    part: str | None
    """``train``, ``validation`` or ``test`` if the folders define the split."""
    noise_ceiling: float | None
    """Kendall's tau between two measuring passes, if known."""


def sources(data: Path, hlorank: Path) -> list[Source]:
    """Returns every graph of a folder or of one file, sorted by name."""
    base = data.parent if data.is_file() else data
    below = [data] if data.is_file() else sorted(data.rglob("*"))
    found = [
        source
        for file in below
        if file.suffix in (".pb", ".npz") and FEATURES_FOLDER not in file.relative_to(base).parts
        for source in _of_file(file, base, hlorank)
    ]
    if not found:
        raise RuntimeError(
            f"'{data}' contains no measured graphs (.pb or .npz); collect some, unpack "
            "measured*.tar.xz, or pass a folder of TpuGraphs"
        )
    return found


def _of_file(file: Path, base: Path, hlorank: Path) -> Iterator[Source]:
    name = file.relative_to(base).with_suffix("").as_posix()
    record = file.with_suffix(".json")
    if record.exists():
        content = read_json(record)
        ceiling = content["tau_between_passes"]
        yield Source(name, file, None, file.stem, content["family"], None, ceiling)
        return
    folders = [PARTS[part] for part in file.relative_to(base).parts[:-1] if part in PARTS]
    part = folders[-1] if folders else None
    modules = [0]
    if file.suffix == ".pb":
        shown = json.loads(run(hlorank, "graph", "inspect", "--json", str(file)))
        modules = [one["module"] for one in shown["graphs"] if one["configurations"] > 1]
    # TpuGraphs calls a file PROGRAM_HASH if it is of a kernel, else PROGRAM.
    program, _, digest = file.stem.rpartition("_")
    family = program if program and len(digest) >= 16 else file.stem
    for module in modules:
        number = f".{module}" if len(modules) > 1 else ""
        yield Source(name + number, file, module, file.stem + number, family, part, None)


PAD_VALUE = 0
"""Value of the places of list columns that a list does not fill, as in TpuGraphs."""


TPUGRAPHS = "tpugraphs-140"
WITH_LOOPS = "tpugraphs-140-loops"
"""Names of feature sets; the second has the columns of a tile's loops too."""


def feature_digest(hlorank: Path, feature_set: str = TPUGRAPHS) -> str:
    """Returns the digest of the definition of a feature set, 64 hex digits."""
    digest = run(hlorank, "graph", "features", "--digest", feature_set).strip()
    if len(digest) != 64:
        raise RuntimeError(f"'{hlorank.name}' printed '{digest[:80]}', expected a feature digest")
    return digest


def featurize(
    hlorank: Path,
    graphs: Sequence[tuple[Path, int | None]],
    outputs: Sequence[Path],
    pad_value: int = PAD_VALUE,
) -> None:
    """Writes one npz per graph (file and module); skips an npz that is newer than its file."""
    jobs = list(zip(graphs, outputs, strict=True))
    with ThreadPoolExecutor(2) as pool:
        done = pool.map(lambda job: _featurize(hlorank, *job[0], job[1], pad_value), jobs)
        list(tqdm(done, total=len(jobs), desc="featurize"))


def _featurize(hlorank: Path, file: Path, module: int | None, output: Path, pad_value: int) -> None:
    if output.exists() and output.stat().st_mtime >= file.stat().st_mtime:
        return
    output.parent.mkdir(parents=True, exist_ok=True)
    chosen = [] if module is None else ["--module", str(module)]
    options = ["--out", str(output), "--pad", str(pad_value), *chosen]
    run(hlorank, "graph", "features", str(file), *options)


def run(hlorank: Path, *arguments: str) -> str:
    """Runs the program and returns its output; raises a RuntimeError if it fails."""
    command = [str(hlorank), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"'{' '.join(command)}' failed: {done.stderr.strip()}")
    return done.stdout
