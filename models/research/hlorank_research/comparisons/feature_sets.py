"""Compares models of graphs with named features on held-out graphs and configurations."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import mean

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits

from hlorank_training.data.feature_graphs import Columns, FeatureGraph, held_out_folds
from hlorank_training.judging.feature_sets import FOLDS, Network, Score, graph_quality, shipped
from hlorank_training.metrics.ranking import random_slowdown
from hlorank_training.reports.tables import markdown

Fit = Callable[[Sequence[FeatureGraph]], Score]
"""Learns from graphs; returns what scores the configurations of others."""
HALIDE = "halide-adams2019-3"
"""The feature set of Halide's autoscheduler."""
_EPOCHS_AGAIN = 30
_HEAD = ("model", "tau", "pairs in order", "top 1", "top 5", "median error")


def boosted_trees(graphs: Sequence[FeatureGraph]) -> Score:
    """Fits trees on sums and maxima over nodes; they predict the logarithm of the run time."""
    trees = HistGradientBoostingRegressor(max_iter=300, l2_regularization=1.0, random_state=1)
    with threadpool_limits(1):
        rows = np.concatenate([_sums(graph) for graph in graphs])
        trees.fit(rows, np.concatenate([np.log(graph.nanoseconds) for graph in graphs]))
    return lambda graph: np.exp(trees.predict(_sums(graph)))


def comparison(columns: Columns, epochs: int) -> dict[str, Fit]:
    """Returns the models that are compared, by name; Halide's features have its own model too."""
    fits: dict[str, Fit] = {"boosted trees": boosted_trees}
    if columns.name == HALIDE:
        fits = {"Halide's, as shipped": _shipped, "Halide's, trained again": _trained_again} | fits
    costs = shipped(columns.products, epochs, 1)
    return fits | {
        "Singh's network and loss": Network("sum", "relative", 2, epochs),
        "Singh's network, loss of pairs": Network("sum", "pairs", 2, epochs),
        "Singh's network, loss of pairs, no convolution": Network("sum", "pairs", 0, epochs),
        "costs times amounts": costs,
        "costs times amounts, no convolution": replace(costs, convolutions=0),
        "costs times amounts, mean of three": replace(costs, members=3),
    }


def _shipped(_: Sequence[FeatureGraph]) -> Score:
    from hlorank_research.comparisons.halide_cost import HalideCostModel

    return HalideCostModel().scores


def _trained_again(graphs: Sequence[FeatureGraph]) -> Score:
    from hlorank_research.comparisons.halide_cost import trained_again

    return trained_again(graphs, _EPOCHS_AGAIN).scores


def compare_unseen(graphs: Sequence[FeatureGraph], fits: Mapping[str, Fit]) -> str:
    """Holds out every fold of graphs once; returns a table."""
    folds = held_out_folds(graphs, FOLDS)

    def rows(fit: Fit) -> list[list[float]]:
        found = []
        for fold in folds:
            score = fit([graph for graph in graphs if graph.name not in fold])
            found += [graph_quality(score(g), g.nanoseconds) for g in graphs if g.name in fold]
        return found

    return _table(graphs, {name: rows(fit) for name, fit in fits.items()})


def compare_known(graphs: Sequence[FeatureGraph], fits: Mapping[str, Fit]) -> str:
    """Holds out a quarter of the configurations of every graph, as the paper does; a table."""
    random = np.random.default_rng(0)
    learned = []
    judged = []
    for graph in graphs:
        order = random.permutation(len(graph.nanoseconds))
        count = max(2, len(order) // FOLDS)
        judged.append(_some(graph, np.sort(order[:count])))
        learned.append(_some(graph, np.sort(order[count:])))

    def rows(fit: Fit) -> list[list[float]]:
        score = fit(learned)
        return [graph_quality(score(graph), graph.nanoseconds) for graph in judged]

    return _table(judged, {name: rows(fit) for name, fit in fits.items()})


def _some(graph: FeatureGraph, configs: np.ndarray) -> FeatureGraph:
    return replace(
        graph,
        config_features=graph.config_features[configs],
        nanoseconds=graph.nanoseconds[configs],
        passes=None if graph.passes is None else graph.passes[:, configs],
    )


def _sums(graph: FeatureGraph) -> np.ndarray:
    """Returns logarithms of sums and maxima over nodes: f64 [c, columns]."""
    static = np.log1p(np.abs(graph.node_features).sum(0))
    configs = np.abs(graph.config_features)
    repeated = np.tile(static, (len(configs), 1))
    return np.concatenate([np.log1p(configs.sum(1)), np.log1p(configs.max(1)), repeated], 1)


def _table(graphs: Sequence[FeatureGraph], found: Mapping[str, list[list[float]]]) -> str:
    rows = [[name, *_cells(np.mean(values, 0).tolist())] for name, values in found.items()]
    chances = [mean(random_slowdown(g.nanoseconds, top) for g in graphs) for top in (1, 5)]
    rows.append(["a random order", "0.00", "0.50", *(f"{chance:.0%}" for chance in chances), ""])
    if passes := [g.passes for g in graphs if g.passes is not None]:
        between = np.mean([graph_quality(second, first) for first, second in passes], 0)
        rows.append(["second pass (noise ceiling)", *_cells(between.tolist())])
    return markdown(_HEAD, rows)


def _cells(values: Sequence[float]) -> list[str]:
    tau, pairs, *shares = values
    return [f"{tau:.2f}", f"{pairs:.2f}", *("" if np.isnan(s) else f"{s:.1%}" for s in shares)]
