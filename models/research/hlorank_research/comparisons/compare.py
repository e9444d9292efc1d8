"""Compares models and baselines on the same split, to show what each part of the model adds."""

from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from hlorank_tune.measure.atomic_files import write_json
from tqdm import tqdm

from hlorank_research.comparisons.applications import application_errors, table_mean
from hlorank_research.comparisons.baselines import BoostedTrees, analytical_cost
from hlorank_research.comparisons.variants import Comparison
from hlorank_research.reports.plots import plot_comparison
from hlorank_training.data.prepare import Prepared
from hlorank_training.judging.evaluate import Score, mean_of
from hlorank_training.judging.held_out import held_out_quality
from hlorank_training.models.architecture import Architecture, Preset, Registry
from hlorank_training.models.checkpoint import load_checkpoint, save_checkpoint
from hlorank_training.models.train import Keeping, score_graph
from hlorank_training.models.train import train as train_model
from hlorank_training.models.training_settings import TrainSettings
from hlorank_training.reports.tables import QUALITY_HEAD, markdown, quality_cells, without_model


@dataclass(frozen=True)
class Compared:
    """What is compared, and where its models are kept."""

    entry: Architecture
    comparison: Comparison
    folder: Path
    training: TrainSettings
    """Hyperparameters of every variant but its loss and seed."""

    def checkpoint(self, run: tuple[str, int]) -> Path:
        """Returns the file of the model of a label and a seed."""
        words = "".join(c if c.isalnum() else " " for c in run[0]).split()
        return self.folder / f"{'_'.join(words).lower()}_{run[1]}.pt"


def compare(compared: Compared, prepared: Prepared, workers: int) -> str:
    """Trains and evaluates every variant; returns a Markdown table and writes a plot.

    Checkpoints and states in the folder are reused, so the same call continues a stopped one.
    """
    missing = [run for run in compared.comparison.runs() if not compared.checkpoint(run).exists()]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        jobs = [pool.submit(train_variant, compared, prepared, run) for run in missing]
        for job in tqdm(as_completed(jobs), total=len(jobs), desc="models"):
            job.result()
    qualities = _qualities(compared, prepared)
    plot_comparison(
        [_taus(*item) for item in qualities.items()], compared.folder / "comparison.svg"
    )
    return table(qualities, compared.comparison)


def train_variant(compared: Compared, prepared: Prepared, run: tuple[str, int]) -> None:
    """Trains one variant with one seed and writes its checkpoint."""
    variant = compared.comparison.variants[run[0]]
    preset = compared.entry.preset("small")
    path = compared.checkpoint(run)
    loss = preset.training.loss
    loss = replace(loss, name=variant.loss or loss.name)
    changed = Preset(
        replace(preset.model, **variant.changes), replace(compared.training, seed=run[1], loss=loss)
    )
    names = prepared.split.train[: round(variant.share * len(prepared.split.train))]
    graphs = prepared.graphs(names)
    validation = prepared.graphs(prepared.split.validation)
    keeping = Keeping(state=path.with_suffix(".state"))
    trained = train_model(compared.entry.model, changed, graphs, validation, keeping)
    save_checkpoint(path, trained.model)


def _qualities(compared: Compared, prepared: Prepared) -> dict[str, dict[str, Any]]:
    """Returns the held-out quality by label, and writes it next to the checkpoints."""
    judge = partial(_quality, compared.entry.task, prepared)
    qualities = {label: judge(score) for label, score in _scores(compared, prepared).items()}
    write_json(compared.folder / "comparison.json", qualities)
    return qualities


def _quality(task: str, prepared: Prepared, score: Score) -> dict[str, Any]:
    quality = held_out_quality(prepared, score)
    if task == "tile":
        errors = [one.tile_size for one in application_errors(prepared, score).values()]
        quality["tile_size_error"] = {"median": median(errors), "mean": table_mean(errors)}
    return quality


def _scores(compared: Compared, prepared: Prepared) -> dict[str, Score]:
    comparison = compared.comparison

    def model(label: str, seed: int) -> Score:
        loaded = load_checkpoint(compared.checkpoint((label, seed)), Registry((compared.entry,)))
        return lambda graph: score_graph(loaded, graph)

    scores = {
        label if seed == 1 else f"{label}, seed {seed}": model(label, seed)
        for label, seed in comparison.runs()
    }
    if comparison.seeds > 1:
        members = [model(comparison.full, seed + 1) for seed in range(comparison.seeds)]
        scores[f"ensemble of {comparison.seeds}"] = mean_of(members)
    if comparison.baselines:
        trees = BoostedTrees(prepared.graphs(prepared.split.train))
        scores["boosted trees, summed features"] = trees.score
        scores["analytical cost"] = analytical_cost
    return scores


def _taus(label: str, quality: dict[str, Any]) -> tuple[str, float, list[float]]:
    """Returns the label, the mean tau and the taus of all held-out graphs, for the plot."""
    taus = [values["kendall_tau"] for values in quality["per_graph"].values()]
    return label, float(np.mean(taus)), taus


def table(qualities: Mapping[str, dict[str, Any]], comparison: Comparison) -> str:
    """Returns a Markdown table with one row per model: means, tau on unseen families, for tiles
    the median and the mean of Kaufman's Tile-Size APE, and the paper's own figure."""
    first = next(iter(qualities.values()))
    tiles = ["Tile-Size APE: median, mean"] if "tile_size_error" in first else []
    published = [comparison.published] if comparison.published else []
    head = ["", *QUALITY_HEAD, "tau, unseen families", *tiles, *published]
    rows = []
    for label, quality in qualities.items():
        measured = quality["measured_quality"]
        unseen = measured.get("unseen_family.kendall_tau")
        row = [label, *quality_cells(measured), "" if unseen is None else f"{unseen:.2f}"]
        if tiles:
            row.append("{median:.0f}%, {mean:.0f}%".format(**quality["tile_size_error"]))
        if published:
            row.append(comparison.variants[label].published)
        rows.append(row)
    rows += without_model(first["measured_quality"])
    return markdown(head, [[*row, *[""] * (len(head) - len(row))] for row in rows])
