"""Compares models and baselines on the same split, to show what each part of the model adds."""

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from hlorank.measure.atomic_files import write_json
from tqdm import tqdm

from hlorank_training.data.prepare import Prepared
from hlorank_training.judging.baselines import BoostedTrees, analytical_cost
from hlorank_training.judging.evaluate import Score, mean_of
from hlorank_training.judging.held_out import held_out_quality
from hlorank_training.models.architectures.architecture import Preset
from hlorank_training.models.architectures.registry import DEFAULT, architecture
from hlorank_training.models.checkpoint import load_checkpoint, save_checkpoint
from hlorank_training.models.loss import LossSettings
from hlorank_training.models.train import score_graph
from hlorank_training.models.train import train as train_model
from hlorank_training.reports.plots import plot_comparison
from hlorank_training.reports.tables import QUALITY_HEAD, markdown, quality_cells, without_model

FULL = "GraphSAGE + Transformer, sum"
_SEEDS = (1, 2, 3)
_ENSEMBLE = f"ensemble of {len(_SEEDS)}"


@dataclass(frozen=True)
class Variant:
    """The differences of a model from the full model."""

    changes: dict[str, Any] = field(default_factory=dict)
    """Changed ``ModelSettings``."""
    loss: str = LossSettings().name
    share: float = 1.0
    """Share of the training graphs, which shows whether more graphs would help."""


_COMMON = {
    FULL: Variant(),
    "no Transformer": Variant({"attention": False}),
    "no edges (MLP)": Variant({"attention": False, "edges": False}),
    "mean pooling": Variant({"pooling": "mean"}),
    "max pooling": Variant({"pooling": "max"}),
    "hinge loss": Variant(loss="hinge"),
    "ListMLE loss": Variant(loss="list_mle"),
    "half of the training graphs": Variant(share=0.5),
}
VARIANTS = {
    "layout": _COMMON,
    "tile": {**_COMMON, "late join": Variant({"late_join": True})},
}
"""The full model, then the papers' ablations."""


def compare(task: str, prepared: Prepared, folder: Path, minutes: float, workers: int) -> str:
    """Trains and evaluates every variant; returns a Markdown table and writes a plot.

    Checkpoints in ``folder`` are reused, so the same call continues a stopped comparison.
    """
    runs = [(label, seed) for label in VARIANTS[task] for seed in _seeds(label)]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        jobs = [
            pool.submit(train_variant, task, prepared, run, folder, minutes)
            for run in runs
            if not _checkpoint(folder, run).exists()
        ]
        for job in tqdm(as_completed(jobs), total=len(jobs), desc="models"):
            job.result()
    qualities = _qualities(task, prepared, folder)
    plot_comparison([_taus(*item) for item in qualities.items()], folder / "comparison.svg")
    return table(qualities)


def train_variant(
    task: str, prepared: Prepared, run: tuple[str, int], folder: Path, minutes: float
) -> None:
    """Trains one variant with one seed and writes its checkpoint."""
    variant = VARIANTS[task][run[0]]
    entry = architecture(task, DEFAULT)
    preset = entry.preset("small")
    loss = replace(preset.training.loss, name=variant.loss)
    settings = replace(preset.training, seed=run[1], minutes=minutes, loss=loss)
    names = prepared.split.train[: round(variant.share * len(prepared.split.train))]
    graphs, validation = prepared.graphs(names), prepared.graphs(prepared.split.validation)
    changed = Preset(replace(preset.model, **variant.changes), settings)
    trained = train_model(entry.model, changed, graphs, validation)
    save_checkpoint(_checkpoint(folder, run), trained.model)


def _seeds(label: str) -> Sequence[int]:
    return _SEEDS if label == FULL else _SEEDS[:1]


def _checkpoint(folder: Path, run: tuple[str, int]) -> Path:
    words = "".join(c if c.isalnum() else " " for c in run[0]).split()
    return folder / f"{'_'.join(words).lower()}_{run[1]}.pt"


def _qualities(task: str, prepared: Prepared, folder: Path) -> dict[str, dict[str, Any]]:
    """Returns the held-out quality by label, and writes it next to the checkpoints."""
    scores = _scores(task, prepared, folder)
    qualities = {label: held_out_quality(prepared, score) for label, score in scores.items()}
    write_json(folder / "comparison.json", qualities)
    return qualities


def _scores(task: str, prepared: Prepared, folder: Path) -> dict[str, Score]:
    def model(label: str, seed: int) -> Score:
        loaded = load_checkpoint(_checkpoint(folder, (label, seed)))
        return lambda graph: score_graph(loaded, graph)

    trees = BoostedTrees(prepared.graphs(prepared.split.train))
    scores: dict[str, Score] = {label: model(label, 1) for label in VARIANTS[task]}
    for seed in _SEEDS[1:]:
        scores[f"{FULL}, seed {seed}"] = model(FULL, seed)
    scores[_ENSEMBLE] = mean_of([model(FULL, seed) for seed in _SEEDS])
    scores["boosted trees, summed features"] = trees.score
    scores["analytical cost"] = analytical_cost
    return scores


def _taus(label: str, quality: dict[str, Any]) -> tuple[str, float, list[float]]:
    """Returns the label, the mean tau and the taus of all held-out graphs, for the plot."""
    taus = [values["kendall_tau"] for values in quality["per_graph"].values()]
    return label, float(np.mean(taus)), taus


def table(qualities: dict[str, dict[str, Any]]) -> str:
    """Returns a Markdown table with one row per model: means, and tau on unseen families."""
    head = ["", *QUALITY_HEAD, "tau, unseen families"]
    rows = []
    for label, quality in qualities.items():
        measured = quality["measured_quality"]
        unseen = measured.get("unseen_family.kendall_tau")
        rows.append([label, *quality_cells(measured), "" if unseen is None else f"{unseen:.2f}"])
    first = next(iter(qualities.values()))["measured_quality"]
    return markdown(head, rows + [[*row, ""] for row in without_model(first)])
