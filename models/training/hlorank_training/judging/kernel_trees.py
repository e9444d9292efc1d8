"""The floor for a model of kernels: boosted trees on sums over nodes, families held out whole."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from hlorank.measure.atomic_files import read_json
from hlorank.measure.schema import TuningData
from scipy.stats import kendalltau
from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits

from hlorank_training.judging.kernel_sums import kernel_sums
from hlorank_training.reports.tables import markdown

LONG = 5_000.0
"""Nanoseconds from which on kernels are judged, as in Kaufman et al. (section 5.2)."""
_HEAD = ("family", "kernels", "MAPE", "median", "tau", "programs", "MAPE", "tau", "top 1")


@dataclass(frozen=True)
class _Kernels:
    """The distinct kernels of all programs."""

    number: dict[int, int]
    """Maps a fingerprint to a row."""
    features: np.ndarray
    estimates: np.ndarray
    nanoseconds: np.ndarray
    families: list[set[str]]


@dataclass(frozen=True)
class _Program:
    family: str
    runs: list[list[int]]
    """The kernels of each configuration whose kernels all have a time."""
    nanoseconds: np.ndarray


def judge_trees(data: Path) -> str:
    """Returns a table of the errors on every family, predicted by trees that saw no kernel of it.

    ``data`` is the folder of ``collect fusion``.
    """
    names = sorted(path.stem for path in (data / "kernels").glob("*.pb"))
    records = {name: read_json(data / "kernels" / f"{name}.json") for name in names}
    kernels = _kernels(data, records)
    programs = [_program(data, record, kernels) for record in records.values()]
    rows = [
        [family, *_judge(family, kernels, [p for p in programs if p.family == family])]
        for family in sorted({program.family for program in programs})
    ]
    means = [np.nanmean([row[column] for row in rows]) for column in range(1, len(_HEAD))]
    return markdown(_HEAD, [[row[0], *_cells(row[1:])] for row in [*rows, ["mean", *means]]])


def _kernels(data: Path, records: dict[str, Any]) -> _Kernels:
    sums, nanoseconds, families, number = [], [], [], {}
    for name, record in records.items():
        content = TuningData.FromString((data / "kernels" / f"{name}.pb").read_bytes())
        for kernel in content.modules:
            if kernel.fingerprint not in number:
                number[kernel.fingerprint] = len(number)
                sums.append(kernel_sums(kernel.module))
                nanoseconds.append(kernel.runs[0].profile.compute_time_ns)
                families.append(set())
            families[number[kernel.fingerprint]].add(record["family"])
    features, estimates = (
        np.array([getattr(one, field) for one in sums]) for field in ("features", "estimate")
    )
    return _Kernels(number, features, estimates, np.array(nanoseconds, np.float64), families)


def _program(data: Path, record: dict[str, Any], kernels: _Kernels) -> _Program:
    """Reads a program's times without the call; kernels below 50 ns count nothing."""
    measured = read_json(data / "programs" / f"{record['name']}.json")
    both = np.array([measured["first_pass"], measured["second_pass"]])
    times = both.min(0) - measured["call_nanoseconds"]
    rows = [kernels.number.get(int(k["digest"][:16], 16)) for k in record["kernels"]]
    failed = {n for n, kernel in enumerate(record["kernels"]) if "error" in kernel}
    whole = [n for n, run in enumerate(record["configurations"]) if not failed.intersection(run)]
    runs = [[rows[k] for k in record["configurations"][n] if rows[k] is not None] for n in whole]
    return _Program(record["family"], runs, times[whole])


def _judge(family: str, kernels: _Kernels, programs: Sequence[_Program]) -> list[float]:
    held_out = np.array([family in families for families in kernels.families])
    predicted = _predicted(kernels, ~held_out)
    judged = held_out & (kernels.nanoseconds >= LONG)
    truth, guess = kernels.nanoseconds[judged], predicted[judged]
    errors = np.abs(guess - truth) / truth
    found = [_judge_program(program, predicted) for program in programs if len(program.runs) > 1]
    whole = np.mean(found, 0) if found else np.full(3, np.nan)
    tau = kendalltau(guess, truth).statistic
    return [len(truth), errors.mean(), np.median(errors), tau, len(found), *whole]


def _predicted(kernels: _Kernels, seen: np.ndarray) -> np.ndarray:
    """Returns nanoseconds of every kernel by trees that saw some.

    Trees learn the factor to the estimate, since they cannot extrapolate run times.
    """
    target = np.log(kernels.nanoseconds / kernels.estimates)
    trees = HistGradientBoostingRegressor(max_iter=150, l2_regularization=1.0, random_state=1)
    # Several threads spin while they wait for each other, for minutes on a busy machine.
    with threadpool_limits(1):
        trees.fit(kernels.features[seen], target[seen])
        return np.exp(trees.predict(kernels.features)) * kernels.estimates


def _judge_program(program: _Program, predicted: np.ndarray) -> list[float]:
    """Returns the error of the sums, Kendall's tau, and how much slower the choice is."""
    sums = np.array([predicted[run].sum() for run in program.runs])
    error = np.mean(np.abs(sums - program.nanoseconds) / program.nanoseconds)
    tau = kendalltau(sums, program.nanoseconds).statistic
    slower = program.nanoseconds[sums.argmin()] / program.nanoseconds.min() - 1
    return [float(error), float(tau), float(slower)]


def _cells(values: Sequence[float]) -> list[str]:
    kinds = ["{:.0f}", "{:.0%}", "{:.0%}", "{:.2f}", "{:.0f}", "{:.0%}", "{:.2f}", "{:.1%}"]
    return [kind.format(value) for kind, value in zip(kinds, values, strict=True)]
