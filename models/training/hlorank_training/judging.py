"""Quality of a model of layouts or tiles on held-out graphs, as its manifest records it."""

from collections.abc import Callable
from statistics import mean
from typing import Any

import numpy as np

from hlorank_training.data.dataset import Measured
from hlorank_training.data.prepare import Prepared
from hlorank_training.data.ranking_quality import (
    kendall_tau,
    ordered_pair_accuracy,
    random_slowdown,
    top_slowdown,
)

TOPS = (1, 5, 10)
Score = Callable[[Measured], np.ndarray]
"""Returns scores f32 [c] of a graph's configurations; lower is predicted faster."""


def graph_quality(graph: Measured, scores: np.ndarray) -> dict[str, float]:
    """Returns the quality of scores, and of a random choice and the default for comparison.

    Slowdowns are relative to the best measured configuration.
    """
    runtimes = graph.runtimes
    values = {
        "kendall_tau": kendall_tau(scores, runtimes),
        "ordered_pair_accuracy": ordered_pair_accuracy(scores, runtimes),
    }
    if graph.default_runtime is not None:
        values["default_slowdown"] = float(graph.default_runtime / runtimes.min() - 1)
    for count in TOPS:
        values[f"top{count}_slowdown"] = top_slowdown(scores, runtimes, count)
        values[f"random_top{count}_slowdown"] = random_slowdown(runtimes, count)
    return values


HOW = "whole graphs held out, chosen by the SHA-256 of their names"
HOW_FOLDERS = "whole graphs held out, as the folders of the data set say"


def held_out_quality(prepared: Prepared, score: Score) -> dict[str, Any]:
    """Returns means over the held-out graphs with the noise ceiling, and figures of every graph.

    Means over families without any training graph are separate, under ``unseen_family.``.
    """
    graphs = prepared.graphs(prepared.split.test)
    qualities = {graph.name: graph_quality(graph, score(graph)) for graph in graphs}
    unseen = {n: q for n, q in qualities.items() if n in prepared.split.unseen_family}
    known = {n: q for n, q in qualities.items() if n not in unseen}
    folders = any(source.part for source in prepared.sources.values())
    measured = {"split": HOW_FOLDERS if folders else HOW} | _means(prepared, known)
    if unseen:
        measured |= {f"unseen_family.{k}": v for k, v in _means(prepared, unseen).items()}
    return {"measured_quality": measured, "per_graph": qualities}


def _means(prepared: Prepared, qualities: dict[str, dict[str, float]]) -> dict[str, Any]:
    """Returns means over the graphs that have a value, and the number of graphs.

    Keys are flat, since the server transmits a map of names to numbers.
    """
    every = qualities.values()
    means: dict[str, Any] = {"graphs": len(qualities)}
    for key in dict.fromkeys(key for values in every for key in values):
        means[key] = round(mean(values[key] for values in every if key in values), 4)
    ceilings = [prepared.sources[name].noise_ceiling for name in qualities]
    known = [ceiling for ceiling in ceilings if ceiling is not None]
    return means | ({"noise_ceiling": round(sum(known) / len(known), 4)} if known else {})
