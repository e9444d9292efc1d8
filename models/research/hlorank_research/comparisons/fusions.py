"""Compares models of fusions on held-out families of programs."""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from hlorank_tune.measure.atomic_files import read_json, write_json

from hlorank_research.comparisons.kernel_trees import KernelTrees
from hlorank_research.papers.reduced_kernel_time import (
    REDUCTIONS,
    ReducedKernelTimeModel,
    ReducedSettings,
)
from hlorank_training.data.kernels import KernelData, family_folds, read_kernels
from hlorank_training.judging.fusions import FusionQuality, ceiling, fusion_quality, passes_tau
from hlorank_training.models.kernel_time import KernelTimeModel, KernelTimeSettings
from hlorank_training.models.train_kernels import KernelTraining, train_kernels
from hlorank_training.reports.tables import markdown

SHIPPED = "work"
"""The model that ships: a sum of costs times work."""
Predict = Callable[[np.ndarray], np.ndarray]
"""Maps the numbers of the kernels to learn from to the nanoseconds of all kernels."""


@dataclass(frozen=True)
class FusionComparison:
    """Where the measured programs are, and what is trained on them."""

    data: Path
    hlorank: Path
    out: Path
    """Folder of the predictions and of the tables."""
    epochs: int = KernelTraining.epochs

    def run(self, workers: int) -> str:
        """Trains on four fifths of the families at a time, and judges on the others.

        Writes the tables into ``tables.md``, and returns them.
        """
        data = read_kernels(self.data, self.hlorank)
        predictions = {"trees": held_out_predictions(data, KernelTrees(data).predict)}
        folds = range(len(family_folds(data.families)))
        models = (SHIPPED, *REDUCTIONS)
        jobs = [Fold(self, fold, model) for fold in folds for model in models]
        with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
            found = list(pool.map(Fold.predict, jobs))
        for model in models:
            predictions[model] = [
                one for job, one in zip(jobs, found, strict=True) if job.model == model
            ]
        tables = fusion_tables(data, predictions)
        self.out.mkdir(parents=True, exist_ok=True)
        (self.out / "tables.md").write_text(tables + "\n", encoding="utf-8")
        return tables


@dataclass(frozen=True)
class Fold:
    """A training that leaves out one fold of families, in a process of its own."""

    comparison: FusionComparison
    number: int
    model: str
    """``SHIPPED`` or one of ``REDUCTIONS``."""

    def predict(self) -> np.ndarray:
        """Returns the predicted nanoseconds of all kernels, and keeps them in a file."""
        path = self.comparison.out / f"{self.model}-{self.number}.json"
        data = read_kernels(self.comparison.data, self.comparison.hlorank)
        training = KernelTraining(epochs=self.comparison.epochs)
        identity = [data.feature_digest, len(data.kernels), asdict(training)]
        if path.exists() and read_json(path)["identity"] == identity:
            return np.array(read_json(path)["nanoseconds"])
        seen = data.seen(family_folds(data.families)[self.number])
        model_class = KernelTimeModel if self.model == SHIPPED else ReducedKernelTimeModel
        settings = (
            KernelTimeSettings() if self.model == SHIPPED else ReducedSettings(reduction=self.model)
        )
        model, _ = train_kernels(data, seen, settings, training, model_class)
        predicted = model.nanoseconds(data.kernels)
        write_json(path, {"identity": identity, "nanoseconds": predicted.tolist()})
        return predicted


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


def _kernel_table(data: KernelData, qualities: dict[str, list[FusionQuality]]) -> str:
    head = ["family", "kernels"]
    rows = []
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
    head = ["family", "programs", "passes: tau"]
    rows = []
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
