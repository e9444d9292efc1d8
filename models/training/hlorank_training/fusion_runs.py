"""Trains, judges and exports models of fusions, which predict times of kernels."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from hlorank_tune.measure.atomic_files import read_json, write_json

from hlorank_training.data.kernels import (
    LONG,
    FusedProgram,
    KernelData,
    family_folds,
    read_kernels,
)
from hlorank_training.data.ranking_quality import kendall_tau
from hlorank_training.models.checkpoint import load_checkpoint, save_checkpoint
from hlorank_training.models.kernel_time import KernelTimeSettings
from hlorank_training.models.train_kernels import KernelTraining, train_kernels
from hlorank_training.registry import REGISTRY
from hlorank_training.runs import (
    CHECKPOINT,
    REPORT,
    Destination,
    TuningFiles,
    refuse_other_features,
)
from hlorank_training.shipping.kernel_artifact import export_kernel_model

_LEAST_CONFIGURATIONS = 5


def train_run(files: TuningFiles, seed: int, folder: Path) -> dict[str, Any]:
    """Trains on all families but the first fold; returns the quality on that fold."""
    data = read_kernels(files.folder, files.hlorank)
    held_out = family_folds(data.families)[0]
    seen = data.seen(held_out)
    settings = KernelTimeSettings()
    training = KernelTraining(seed=seed)
    model, history = train_kernels(data, seen, settings, training)
    save_checkpoint(folder / CHECKPOINT, model)
    quality = fusion_quality(data, model.nanoseconds(data.kernels), held_out)
    report = {
        "feature_digest": data.feature_digest,
        "architecture": model.architecture,
        "model": asdict(settings),
        "settings": asdict(training),
        "held_out": held_out,
        "kernels": len(seen),
        "history": history,
        "measured_quality": quality,
    }
    write_json(folder / REPORT, report)
    return quality


def export_run(files: TuningFiles, run: Path, destination: Destination) -> None:
    """Writes the artifact of a trained model.

    Raises:
        ValueError: if the model was trained with another featurizer.
    """
    report = read_json(run / REPORT)
    data = read_kernels(files.folder, files.hlorank)
    refuse_other_features(report, data.feature_digest)
    held_out = report["held_out"]
    learned = [program.file for program in data.programs if program.family not in held_out]
    measured = [program.file for program in data.programs]
    identity = destination.identity(data.feature_digest, learned, measured)
    model = load_checkpoint(run / CHECKPOINT, REGISTRY)
    quality = report["measured_quality"]
    export_kernel_model(destination.folder, model, identity, data, held_out, quality)


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
