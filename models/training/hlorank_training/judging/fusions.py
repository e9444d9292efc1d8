"""Measures how well run times of kernels, and of programs as their sums, are predicted."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hlorank_training.data.kernels import LONG, FusedProgram, KernelData
from hlorank_training.data.ranking_quality import kendall_tau

_LEAST_CONFIGURATIONS = 5


def fusion_quality(
    data: KernelData, predicted: np.ndarray, families: Sequence[str]
) -> dict[str, Any]:
    """Judges predicted nanoseconds of all kernels on the kernels and programs of families.

    Returns the figures of a manifest: on kernels of at least 5 microseconds, with errors relative
    to the measured times, and means over programs, predicted as sums of kernels; NaN where there
    are none.
    """
    times = data.nanoseconds()
    judged = [number for number in data.unseen(families) if times[number] >= LONG]
    truth = times[judged]
    guess = predicted[judged]
    errors = np.abs(guess - truth) / truth
    of_families = (program for program in data.programs if program.family in families)
    chosen = [program for program in of_families if len(program.runs) >= _LEAST_CONFIGURATIONS]
    # What the sums of the measured kernels achieve, and no prediction can exceed.
    best = np.nan_to_num(times)
    found = [
        [*_judge(one, predicted), _judge(one, best)[1], kendall_tau(*one.passes)] for one in chosen
    ]
    error, tau, slower, ceiling, agreement = np.mean(found, axis=0) if found else np.full(5, np.nan)
    figures = {
        "kernels": len(judged),
        "kernel_mape": float(errors.mean()),
        "kernel_median_error": float(np.median(errors)),
        "kernel_kendall_tau": kendall_tau(guess, truth),
        "programs": len(chosen),
        "program_mape": float(error),
        "kendall_tau": float(tau),
        "kendall_tau_of_measured_kernels": float(ceiling),
        "kendall_tau_between_passes": float(agreement),
        "top1_slowdown": float(slower),
    }
    split = "families of programs that the model has not seen, with all their kernels"
    return {"split": split} | {name: round(value, 4) for name, value in figures.items()}


def _judge(program: FusedProgram, predicted: np.ndarray) -> tuple[float, float, float]:
    """Returns the error of the sums, Kendall's tau, and how much slower the choice is."""
    sums = np.array([predicted[run].sum() for run in program.runs])
    times = program.nanoseconds
    error = np.mean(np.abs(sums - times) / times)
    slower = times[sums.argmin()] / times.min() - 1
    return float(error), kendall_tau(sums, times), float(slower)
