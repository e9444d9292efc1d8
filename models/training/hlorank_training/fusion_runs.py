"""Trains and exports models of fusions, which predict times of kernels."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hlorank_tune.measure.atomic_files import read_json, write_json

from hlorank_training.data.kernels import KernelData, family_folds, read_kernels
from hlorank_training.judging.fusions import FusionQuality, ceiling, fusion_quality, passes_tau
from hlorank_training.measuring.provenance import targets_of
from hlorank_training.models.checkpoint import load_kernel_model, save_checkpoint
from hlorank_training.models.kernel_time import KernelTimeSettings
from hlorank_training.models.train_kernels import KernelTraining, train_kernels
from hlorank_training.runs import CHECKPOINT, REPORT, Destination, TuningFiles
from hlorank_training.shipping.export import ArtifactIdentity, digest
from hlorank_training.shipping.kernel_artifact import export_kernel_model


def train_fusion_run(files: TuningFiles, seed: int, folder: Path) -> dict[str, Any]:
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
        "measured_quality": _figures(data, held_out, quality),
    }
    write_json(folder / REPORT, report)
    return report["measured_quality"]


def export_fusion_run(files: TuningFiles, run: Path, destination: Destination) -> None:
    """Writes the artifact of a trained model.

    Raises:
        ValueError: if the model was trained with another featurizer.
    """
    report = read_json(run / REPORT)
    data = read_kernels(files.folder, files.hlorank)
    if report["feature_digest"] != data.feature_digest:
        raise ValueError("the model was trained with another featurizer; train it again")
    held_out = report["held_out"]
    identity = ArtifactIdentity(
        name=destination.name,
        version=destination.version,
        feature_digest=data.feature_digest,
        training_data_digest=digest(
            [program.file for program in data.programs if program.family not in held_out]
        ),
        targets=targets_of([program.file for program in data.programs]),
    )
    model = load_kernel_model(run / CHECKPOINT)
    quality = report["measured_quality"]
    export_kernel_model(destination.folder, model, identity, data, held_out, quality)


def _figures(data: KernelData, held_out: Sequence[str], quality: FusionQuality) -> dict[str, Any]:
    """Returns the figures of a manifest."""
    best = ceiling(data, held_out)
    return {
        "split": "families of programs that the model has not seen, with all their kernels",
        "kernels": quality.kernels,
        "kernel_mape": round(quality.error, 4),
        "kernel_median_error": round(quality.median_error, 4),
        "kernel_kendall_tau": round(quality.tau, 4),
        "programs": quality.programs,
        "program_mape": round(quality.program_error, 4),
        "kendall_tau": round(quality.program_tau, 4),
        "kendall_tau_of_measured_kernels": round(best.program_tau, 4),
        "kendall_tau_between_passes": round(passes_tau(data, held_out), 4),
        "top1_slowdown": round(quality.top1, 4),
    }
