"""The lists of the validation data by which a server tells how far a ranking can be trusted."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

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


def write_calibration(folder: Path, features: Sequence[Path], score: Score) -> tuple[str, ...]:
    """Writes the calibration of a model from graphs that it did not learn from.

    Returns the name of the file, or nothing if there are fewer than ``LEAST_LISTS`` graphs.
    """
    (folder / CALIBRATION).unlink(missing_ok=True)
    lists = [of_list(path, score) for path in features]
    if len(lists) < LEAST_LISTS:
        return ()
    text = ",\n".join(json.dumps(one) for one in lists)
    write_atomically(folder / CALIBRATION, f'{{"lists": [\n{text}\n]}}\n'.encode())
    return (CALIBRATION,)


def of_list(path: Path, score: Score) -> dict[str, Any]:
    """Returns what a server sees of a graph's configurations, and how well they are ranked.

    ``spread`` is the standard deviation of the scores, ``columns`` has the mean of
    ln(1 + abs(x)) of each column over the nodes of some configurations, and ``tau`` is Kendall's.
    """
    with np.load(path) as arrays:
        run_times = arrays["config_runtime"]
        key = "node_config_feat" if "node_config_feat" in arrays.files else "config_feat"
        configurations = arrays[key]
    scores = score(path, np.arange(len(run_times)))
    rows = _seen(configurations)
    columns = np.log1p(np.abs(rows)).mean(0)
    return {
        "spread": round(float(np.std(scores)), _DIGITS),
        "columns": [round(float(column), _DIGITS) for column in columns],
        "tau": round(kendall_tau(scores, run_times), _DIGITS),
    }


def _seen(configurations: np.ndarray) -> np.ndarray:
    """Returns the rows f64 [rows, columns] of as many configurations as a server looks at."""
    values = max(configurations[0].size, 1)
    wanted = min(max(_MOST_VALUES // values, 1), _MOST_CONFIGURATIONS)
    step = -(-len(configurations) // wanted)
    return configurations[::step].reshape(-1, configurations.shape[-1]).astype(float)
