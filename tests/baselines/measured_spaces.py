"""Measured spaces of GPU kernels, and what a search in one found."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

STEPS = (1, 2, 5, 10, 20, 50, 100)
"""Numbers of measurements after which a search is judged."""
BUDGET = STEPS[-1]
_MOST = 99.0
"""The regret of a search that has found nothing that runs: its best counts 100 times."""


@dataclass(frozen=True)
class Space:
    """All configurations of a kernel that are valid, measured on one GPU."""

    kernel: str
    gpu: str
    columns: list[str]
    parameters: np.ndarray
    """i64 [n, p]"""
    seconds: np.ndarray
    """f64 [n], infinite if the configuration failed"""

    @cached_property
    def number(self) -> dict[tuple[int, ...], int]:
        """The number of each configuration."""
        return {tuple(row): number for number, row in enumerate(self.parameters.tolist())}

    @cached_property
    def values(self) -> dict[str, list[int]]:
        """The values of each parameter, ascending."""
        values = [np.unique(column).tolist() for column in self.parameters.T]
        return dict(zip(self.columns, values, strict=True))


def read(folder: Path) -> list[Space]:
    """Reads every list ``KERNEL.GPU.npz`` of a folder."""
    return [_read(path) for path in sorted(folder.glob("*.npz"))]


def _read(path: Path) -> Space:
    kernel, gpu = path.stem.split(".")
    with np.load(path) as arrays:
        parameters = arrays["params"]
        if (parameters != np.rint(parameters)).any():
            raise ValueError(f"{path} has parameters that are no whole numbers")
        columns = [str(name) for name in arrays["names"]]
        return Space(kernel, gpu, columns, parameters.astype(np.int64), arrays["seconds"])


def regrets(space: Space, order: Sequence[int]) -> list[float]:
    """How much slower the best that was found is than the best there is, after each of ``STEPS``.

    A search that ended before keeps what it had found.
    """
    found = np.minimum.accumulate(space.seconds[np.asarray(order)])
    best = space.seconds.min()
    return [min(_MOST, float(found[min(step, len(found)) - 1] / best - 1)) for step in STEPS]


def mean_regret(regrets: Iterable[Sequence[float]]) -> np.ndarray:
    """The geometric mean of how many times slower than the best, minus 1."""
    return np.expm1(np.log1p(np.array(list(regrets))).mean(0))
