"""What lists of the validation data say of scores: how far a ranking can be trusted, and how much
run times rise with them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from hlorank_tune.measure.atomic_files import write_atomically

from hlorank_training.data.ranking_quality import kendall_tau
from hlorank_training.shipping.golden import Score

CALIBRATION = "calibration.json"
LEAST_LISTS = 8
"""A server refuses fewer lists."""
_MOST_CONFIGURATIONS = 16
_MOST_VALUES = 2048
_DIGITS = 3


@dataclass(frozen=True)
class ScoredList:
    """The configurations of a graph that the model did not learn from, with their scores."""

    scores: np.ndarray
    """f32 [c]"""
    run_times: np.ndarray
    """i64 [c], nanoseconds"""
    rows: np.ndarray
    """f64 [rows, columns] of as many configurations as a server looks at"""

    @classmethod
    def of(cls, path: Path, score: Score) -> Self:
        """Reads a file that ``hlorank graph features`` wrote."""
        with np.load(path) as arrays:
            run_times = arrays["config_runtime"]
            key = "node_config_feat" if "node_config_feat" in arrays.files else "config_feat"
            rows = _seen(arrays[key])
        return cls(score(path, np.arange(len(run_times))), run_times, rows)


def write_calibration(folder: Path, lists: Sequence[ScoredList]) -> tuple[str, ...]:
    """Writes the calibration of a model.

    Returns the name of the file, or nothing if there are fewer than ``LEAST_LISTS``.
    """
    (folder / CALIBRATION).unlink(missing_ok=True)
    if len(lists) < LEAST_LISTS:
        return ()
    text = ",\n".join(json.dumps(of_list(one)) for one in lists)
    write_atomically(folder / CALIBRATION, f'{{"lists": [\n{text}\n]}}\n'.encode())
    return (CALIBRATION,)


def of_list(one: ScoredList) -> dict[str, Any]:
    """Returns what a server sees of a list, and how well it is ranked.

    ``spread`` is the standard deviation of the scores, ``columns`` has the mean of
    ln(1 + abs(x)) of each column over the nodes of some configurations, and ``tau`` is Kendall's.
    """
    columns = np.log1p(np.abs(one.rows)).mean(0)
    return {
        "spread": round(float(np.std(one.scores)), _DIGITS),
        "columns": [round(float(column), _DIGITS) for column in columns],
        "tau": round(kendall_tau(one.scores, one.run_times), _DIGITS),
    }


def prior(lists: Sequence[tuple[np.ndarray, np.ndarray]]) -> dict[str, float]:
    """Returns the manifest's ``prior``, given the scores and run times of each list.

    One line through all lists, each around its own mean, says how much ln(seconds) rises per unit
    of score, and with what deviation. The lists differ in their slope, so lines of their own would
    leave too little, and a server would learn too much from a few measurements.
    """
    scores = np.concatenate([scores - scores.mean() for scores, _ in lists])
    times = np.concatenate([np.log(times) - np.log(times).mean() for _, times in lists])
    slope = scores @ times / max(scores @ scores, 1e-9)
    spread = np.std(times - slope * scores)
    return {
        name: round(max(float(value), 10**-_DIGITS), _DIGITS)
        for name, value in (("slope", slope), ("spread", spread))
    }


def _seen(configurations: np.ndarray) -> np.ndarray:
    """Returns the rows f64 [rows, columns] of as many configurations as a server looks at."""
    values = max(configurations[0].size, 1)
    wanted = min(max(_MOST_VALUES // values, 1), _MOST_CONFIGURATIONS)
    step = -(-len(configurations) // wanted)
    return configurations[::step].reshape(-1, configurations.shape[-1]).astype(float)
