"""``train``, ``compare`` and ``export`` of models of fusions, which predict times of kernels."""

import argparse
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from multiprocessing import get_context
from typing import Any

import numpy as np
from hlorank.measure.atomic_files import read_json, write_json

from hlorank_training.data.kernels import KernelData, family_folds, read_kernels
from hlorank_training.judging.fusions import (
    FusionQuality,
    ceiling,
    fusion_quality,
    fusion_tables,
    held_out_predictions,
    passes_tau,
)
from hlorank_training.judging.kernel_trees import KernelTrees
from hlorank_training.models.kernel_time import REDUCTIONS, KernelTimeSettings
from hlorank_training.models.kernel_weights import load_weights, save_weights
from hlorank_training.models.train_kernels import KernelTraining, train_kernels
from hlorank_training.shipping.export import ArtifactIdentity, digest
from hlorank_training.shipping.kernel_artifact import export_kernel_model


def train(arguments: argparse.Namespace) -> None:
    """Train on all families but the first fold, and measure the quality on that fold."""
    data = read_kernels(arguments.data, arguments.hlorank)
    held_out = family_folds(data.families)[0]
    seen = data.seen(held_out)
    settings, training = KernelTimeSettings(), KernelTraining(seed=arguments.seed)
    model, history = train_kernels(data, seen, settings, training)
    save_weights(arguments.out / "checkpoint.pt", model)
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
    write_json(arguments.out / "training.json", report)
    for name, value in report["measured_quality"].items():
        print(f"{name:34} {value}")


def compare(arguments: argparse.Namespace) -> None:
    """Train on four fifths of the families at a time, and judge on the others."""
    data = read_kernels(arguments.data, arguments.hlorank)
    predictions = {"trees": held_out_predictions(data, KernelTrees(data).predict)}
    folds = range(len(family_folds(data.families)))
    jobs = [_Fold(arguments, fold, reduction) for fold in folds for reduction in REDUCTIONS]
    with ProcessPoolExecutor(arguments.workers, get_context("spawn")) as pool:
        found = list(pool.map(_Fold.predict, jobs))
    for reduction in REDUCTIONS:
        predictions[reduction] = [
            one for job, one in zip(jobs, found, strict=True) if job.reduction == reduction
        ]
    tables = fusion_tables(data, predictions)
    (arguments.out / "tables.md").parent.mkdir(parents=True, exist_ok=True)
    (arguments.out / "tables.md").write_text(tables + "\n", encoding="utf-8")
    print(tables)


def export(arguments: argparse.Namespace) -> None:
    """Write the artifact of a trained model."""
    if len(arguments.run) > 1:
        raise SystemExit("--run: a model of fusions is exported alone; name one run")
    report = read_json(arguments.run[0] / "training.json")
    data = read_kernels(arguments.data, arguments.hlorank)
    if report["feature_digest"] != data.feature_digest:
        raise SystemExit("--run: the model was trained with another featurizer; train it again")
    held_out = report["held_out"]
    trained_on = [program.file for program in data.programs if program.family not in held_out]
    identity = ArtifactIdentity(
        name=arguments.name,
        version=arguments.version,
        feature_digest=data.feature_digest,
        training_data_digest=digest(trained_on),
    )
    folder = arguments.out / identity.name / str(identity.version)
    model = load_weights(arguments.run[0] / "checkpoint.pt")
    export_kernel_model(folder, model, identity, data, held_out, report["measured_quality"])


class _Fold:
    """A training that leaves out one fold of families, in a process of its own."""

    def __init__(self, arguments: argparse.Namespace, fold: int, reduction: str):
        self._arguments, self._fold, self.reduction = arguments, fold, reduction

    def predict(self) -> np.ndarray:
        """Returns the predicted nanoseconds of all kernels, and keeps them in a file."""
        arguments = self._arguments
        path = arguments.out / f"{self.reduction}-{self._fold}.json"
        data = read_kernels(arguments.data, arguments.hlorank)
        training = KernelTraining(epochs=arguments.epochs or KernelTraining.epochs)
        identity = [data.feature_digest, len(data.kernels), asdict(training)]
        if path.exists() and read_json(path)["identity"] == identity:
            return np.array(read_json(path)["nanoseconds"])
        seen = data.seen(family_folds(data.families)[self._fold])
        settings = KernelTimeSettings(reduction=self.reduction)
        model, _ = train_kernels(data, seen, settings, training)
        predicted = model.nanoseconds(data.kernels)
        write_json(path, {"identity": identity, "nanoseconds": predicted.tolist()})
        return predicted


def _figures(data: KernelData, held_out: tuple[str, ...], quality: FusionQuality) -> dict[str, Any]:
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
