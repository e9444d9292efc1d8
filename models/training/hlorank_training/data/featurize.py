"""Featurizes tuning files with the program ``hlorank``, which has the server's featurizer."""

import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tqdm import tqdm

PAD_VALUE = 0
"""Value of the places of list columns that a list does not fill, as in TpuGraphs."""


def feature_digest(hlorank: Path) -> str:
    """Returns the digest of the featurizer's definition, 64 hex digits."""
    digest = run(hlorank, "graph", "features", "--digest").strip()
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
