"""Trains and exports models of fusions, which predict times of kernels."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from hlorank_tune.measure.atomic_files import read_json, write_json

from hlorank_training.data.kernels import family_folds, read_kernels
from hlorank_training.judging.fusions import fusion_quality
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
        "measured_quality": quality,
    }
    write_json(folder / REPORT, report)
    return quality


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
