"""Trains, judges and exports models of feature sets in one step."""

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from hlorank_training.data.feature_graphs import (
    FeatureGraph,
    held_out_folds,
    read_columns,
    read_feature_graphs,
)
from hlorank_training.data.ranking_quality import (
    kendall_tau,
    ordered_pair_accuracy,
    top_slowdown,
)
from hlorank_training.models.feature_set_model import (
    FeatureSetEnsemble,
    FeatureSetModel,
    FeatureSetSettings,
    StepModel,
)
from hlorank_training.models.train_feature_sets import FeatureSetTraining, train_feature_set
from hlorank_training.runs import Destination
from hlorank_training.shipping.feature_set_artifact import export_feature_set, feature_digest

Score = Callable[[FeatureGraph], np.ndarray]
FOLDS = 4


def train_feature_set_artifact(
    folder: Path, epochs: int, members: int, order: bool, destination: Destination
) -> dict[str, Any]:
    """Trains on three quarters of the graphs, and writes the artifact, whose scores are seconds or
    an ``order``.

    Returns its quality on the other graphs.

    Raises:
        ValueError: if the folder has no or too few graphs.
    """
    graphs = read_feature_graphs(folder)
    columns = read_columns(folder, graphs)
    if len(graphs) < FOLDS:
        raise ValueError(f"{len(graphs)} graphs; a model needs {FOLDS}, one to judge it")
    held_out = held_out_folds(graphs, FOLDS)[0]
    learned = [graph for graph in graphs if graph.name not in held_out]
    judged = [graph for graph in graphs if graph.name in held_out]
    model = train_members(learned, columns.products, epochs, members, order)
    quality = held_out_quality(judged, model.scores)
    if order:
        quality.pop("median_error", None)
    files = [folder / f"{graph.name}.npz" for graph in learned]
    identity = destination.identity(feature_digest(columns), files, files)
    export_feature_set(destination.folder, model, identity, columns, judged, quality)
    return quality


def train_members(
    graphs: Sequence[FeatureGraph],
    products: tuple[tuple[int, ...], ...],
    epochs: int,
    members: int,
    order: bool,
) -> FeatureSetEnsemble:
    """Trains models with different seeds, whose mean is exported.

    ``order`` says that scores only order the configurations of a graph; every seed then has a model
    of each kind, which order held-out graphs better together than either does.
    """
    columns = graphs[0].node_features.shape[-1], graphs[0].config_features.shape[-1]
    settings = FeatureSetSettings(*columns, products=products, order=order)
    trainings = [FeatureSetTraining(epochs, seed=seed) for seed in range(1, members + 1)]
    kinds = (FeatureSetModel, StepModel) if order else (FeatureSetModel,)
    return FeatureSetEnsemble(
        [train_feature_set(graphs, settings, each, kind) for kind in kinds for each in trainings]
    )


def held_out_quality(graphs: Sequence[FeatureGraph], score: Score) -> dict[str, Any]:
    """Returns the figures of a manifest: means over graphs, and their noise ceiling."""
    found = [graph_quality(score(graph), graph.nanoseconds) for graph in graphs]
    tau, pairs, top1, top5, error = np.mean(found, 0).round(4).tolist()
    figures: dict[str, Any] = {
        "split": "graphs that the model has not seen",
        "graphs": len(graphs),
        "kendall_tau": tau,
        "ordered_pair_accuracy": pairs,
        "top1_slowdown": top1,
        "top5_slowdown": top5,
    }
    if np.isfinite(error):
        figures["median_error"] = error
    ceilings = [graph.noise_ceiling for graph in graphs]
    known = [ceiling for ceiling in ceilings if ceiling is not None]
    return figures | ({"kendall_tau_between_passes": round(mean(known), 4)} if known else {})


def graph_quality(scores: np.ndarray, times: np.ndarray) -> list[float]:
    """Returns the values of the table's columns; the error is after one factor for the graph."""
    scaled = scores * np.median(times / np.where(scores > 0, scores, np.nan))
    return [
        kendall_tau(scores, times),
        ordered_pair_accuracy(scores, times),
        top_slowdown(scores, times, 1),
        top_slowdown(scores, times, 5),
        float(np.median(np.abs(scaled - times) / times)) if (scores > 0).all() else np.nan,
    ]
