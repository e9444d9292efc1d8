"""Measures how well run times of kernels, and of programs as their sums, are predicted."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import kendalltau

from hlorank_training.data.kernels import LONG, FusedProgram, KernelData, family_folds
from hlorank_training.reports.tables import markdown

Predict = Callable[[np.ndarray], np.ndarray]
"""Maps the numbers of the kernels to learn from to the nanoseconds of all kernels."""
_LEAST_CONFIGURATIONS = 5


@dataclass(frozen=True)
class FusionQuality:
    """Errors on kernels of at least 5 microseconds, and on programs; NaN where there are none."""

    kernels: int
    error: float
    """Mean of the absolute errors, relative to the measured times (MAPE)."""
    median_error: float
    tau: float
    """Kendall's tau of predicted and measured times of kernels."""
    programs: int
    program_error: float
    """The same of programs, predicted as sums of kernels."""
    program_tau: float
    """The mean over the programs of Kendall's tau over a program's configurations."""
    top1: float
    """How much longer the configuration with the smallest prediction takes than the fastest."""


def fusion_quality(
    data: KernelData, predicted: np.ndarray, families: Sequence[str]
) -> FusionQuality:
    """Judges predicted nanoseconds of all kernels on the kernels and programs of families."""
    times = data.nanoseconds()
    judged = [number for number in data.unseen(families) if times[number] >= LONG]
    truth, guess = times[judged], predicted[judged]
    errors = np.abs(guess - truth) / truth
    chosen = [p for p in data.programs if p.family in families and _is_judged(p)]
    found = np.array([_judge(program, predicted) for program in chosen]).reshape(-1, 3)
    whole = found.mean(0) if len(found) else np.full(3, np.nan)
    return FusionQuality(
        len(judged),
        float(errors.mean()),
        float(np.median(errors)),
        float(kendalltau(guess, truth).statistic),
        len(chosen),
        *map(float, whole),
    )


def ceiling(data: KernelData, families: Sequence[str]) -> FusionQuality:
    """Returns what the sums of the measured kernels achieve, and no prediction can exceed."""
    return fusion_quality(data, np.nan_to_num(data.nanoseconds()), families)


def passes_tau(data: KernelData, families: Sequence[str]) -> float:
    """Returns the mean tau between the two passes of the programs: their noise."""
    chosen = [p for p in data.programs if p.family in families and _is_judged(p)]
    taus = [kendalltau(*program.passes).statistic for program in chosen]
    return float(np.mean(taus)) if taus else float("nan")


def held_out_predictions(data: KernelData, predict: Predict) -> list[np.ndarray]:
    """Holds out every fold of families once; returns the predictions of each fold's model.

    A kernel that occurs in a held-out family is held out with it.
    """
    return [predict(data.seen(fold)) for fold in family_folds(data.families)]


def fusion_tables(data: KernelData, predictions: dict[str, list[np.ndarray]]) -> str:
    """Returns a table of kernels and one of programs, a row per family.

    ``predictions`` has nanoseconds of all kernels per predictor and fold.
    """
    folds = family_folds(data.families)
    fold_of = {family: number for number, fold in enumerate(folds) for family in fold}
    qualities = {
        name: [fusion_quality(data, found[fold_of[family]], [family]) for family in data.families]
        for name, found in predictions.items()
    }
    return f"{_kernel_table(data, qualities)}\n\n{_program_table(data, qualities)}"


def _is_judged(program: FusedProgram) -> bool:
    return len(program.runs) >= _LEAST_CONFIGURATIONS


def _judge(program: FusedProgram, predicted: np.ndarray) -> tuple[float, float, float]:
    """Returns the error of the sums, Kendall's tau, and how much slower the choice is."""
    sums = np.array([predicted[run].sum() for run in program.runs])
    times = program.nanoseconds
    error = np.mean(np.abs(sums - times) / times)
    slower = times[sums.argmin()] / times.min() - 1
    return float(error), float(kendalltau(sums, times).statistic), float(slower)


def _kernel_table(data: KernelData, qualities: dict[str, list[FusionQuality]]) -> str:
    head, rows = ["family", "kernels"], []
    for name in qualities:
        head += [f"{name}: MAPE", "median", "tau"]
    for number, family in enumerate([*data.families, "mean"]):
        row = [family]
        for name, found in qualities.items():
            values = [(q.kernels, q.error, q.median_error, q.tau) for q in found]
            kernels, *errors, tau = [*values, tuple(np.nanmean(values, 0))][number]
            row += [f"{kernels:,.0f}"] * (name == next(iter(qualities)))
            row += [*(f"{error:.0%}" for error in errors), f"{tau:.2f}"]
        rows.append(row)
    return markdown(head, rows)


def _program_table(data: KernelData, qualities: dict[str, list[FusionQuality]]) -> str:
    head, rows = ["family", "programs", "passes: tau"], []
    judged = {"measured kernels": [ceiling(data, [family]) for family in data.families]}
    judged |= qualities
    for name in judged:
        head += [f"{name}: MAPE", "tau", "top 1"]
    noise = [passes_tau(data, [family]) for family in data.families]
    for number, family in enumerate([*data.families, "mean"]):
        counts = [q.programs for q in judged["measured kernels"]]
        row = [family, f"{[*counts, sum(counts)][number]}"]
        row.append(f"{[*noise, np.nanmean(noise)][number]:.2f}")
        for found in judged.values():
            values = [(q.program_error, q.program_tau, q.top1) for q in found]
            error, tau, top1 = [*values, tuple(np.nanmean(values, 0))][number]
            row += [f"{error:.0%}", f"{tau:.2f}", f"{top1:.1%}"]
        rows.append(row)
    return markdown(head, rows)
