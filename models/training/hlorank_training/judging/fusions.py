"""Measures how well run times of kernels, and of programs as their sums, are predicted."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hlorank_training.data.kernels import LONG, FusedProgram, KernelData
from hlorank_training.metrics.ranking import kendall_tau

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
    truth = times[judged]
    guess = predicted[judged]
    errors = np.abs(guess - truth) / truth
    chosen = [p for p in data.programs if p.family in families and _is_judged(p)]
    found = np.array([_judge(program, predicted) for program in chosen]).reshape(-1, 3)
    whole = found.mean(0) if len(found) else np.full(3, np.nan)
    return FusionQuality(
        len(judged),
        float(errors.mean()),
        float(np.median(errors)),
        kendall_tau(guess, truth),
        len(chosen),
        *map(float, whole),
    )


def ceiling(data: KernelData, families: Sequence[str]) -> FusionQuality:
    """Returns what the sums of the measured kernels achieve, and no prediction can exceed."""
    return fusion_quality(data, np.nan_to_num(data.nanoseconds()), families)


def passes_tau(data: KernelData, families: Sequence[str]) -> float:
    """Returns the mean tau between the two passes of the programs: their noise."""
    chosen = [p for p in data.programs if p.family in families and _is_judged(p)]
    taus = [kendall_tau(*program.passes) for program in chosen]
    return float(np.mean(taus)) if taus else float("nan")


def _is_judged(program: FusedProgram) -> bool:
    return len(program.runs) >= _LEAST_CONFIGURATIONS


def _judge(program: FusedProgram, predicted: np.ndarray) -> tuple[float, float, float]:
    """Returns the error of the sums, Kendall's tau, and how much slower the choice is."""
    sums = np.array([predicted[run].sum() for run in program.runs])
    times = program.nanoseconds
    error = np.mean(np.abs(sums - times) / times)
    slower = times[sums.argmin()] / times.min() - 1
    return float(error), kendall_tau(sums, times), float(slower)
