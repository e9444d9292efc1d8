"""Trains the models of feature sets that are exported, and measures them on held-out graphs."""

from collections.abc import Callable, Sequence
from statistics import mean
from typing import Any

import numpy as np

from hlorank_training.data.feature_graphs import FeatureGraph
from hlorank_training.data.ranking_quality import kendall_tau, ordered_pair_accuracy, top_slowdown
from hlorank_training.models.feature_set_model import FeatureSetEnsemble, FeatureSetSettings
from hlorank_training.models.train_feature_sets import FeatureSetTraining, train_feature_set

Score = Callable[[FeatureGraph], np.ndarray]
FOLDS = 4


def train_members(
    graphs: Sequence[FeatureGraph],
    products: tuple[tuple[int, ...], ...],
    epochs: int,
    members: int,
    order: bool,
) -> FeatureSetEnsemble:
    """Trains models with different seeds, whose mean is exported.

    ``order`` says that scores only order the configurations of a graph.
    """
    columns = graphs[0].node_features.shape[-1], graphs[0].config_features.shape[-1]
    settings = FeatureSetSettings(*columns, products=products, order=order)
    trainings = [FeatureSetTraining(epochs, seed=seed) for seed in range(1, members + 1)]
    return FeatureSetEnsemble([train_feature_set(graphs, settings, each) for each in trainings])


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
