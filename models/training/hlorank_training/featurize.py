"""Features of tuning files, by the same program that the server is made of."""

import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tqdm import tqdm

PAD_VALUE = 0


def feature_digest(hlorank: Path) -> str:
    """The digest of the featurizer's definition, 64 hex digits."""
    digest = _run(hlorank, "--digest").strip()
    if len(digest) != 64:
        raise RuntimeError(f"'{hlorank.name}' gave no feature digest but '{digest[:80]}'")
    return digest


def featurize(hlorank: Path, files: Sequence[Path], folder: Path) -> list[Path]:
    """Write one npz per single-graph tuning file; those newer than their source are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    outputs = [folder / f"{file.stem}.npz" for file in files]
    with ThreadPoolExecutor(2) as pool:
        jobs = pool.map(lambda pair: _featurize(hlorank, *pair), zip(files, outputs, strict=True))
        list(tqdm(jobs, total=len(files), desc="featurize"))
    return outputs


def _featurize(hlorank: Path, file: Path, output: Path) -> None:
    if not output.exists() or output.stat().st_mtime < file.stat().st_mtime:
        _run(hlorank, str(file), "--out", str(output), "--pad", str(PAD_VALUE))


def _run(hlorank: Path, *arguments: str) -> str:
    command = [str(hlorank), "graph", "features", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"'{' '.join(command)}' failed: {done.stderr.strip()}")
    return done.stdout
