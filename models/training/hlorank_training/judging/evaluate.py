"""Ranking quality per graph, compared with choices that need no model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

import numpy as np

from hlorank_training.data.dataset import Measured
from hlorank_training.metrics.ranking import (
    kendall_tau,
    ordered_pair_accuracy,
    random_slowdown,
    top_slowdown,
)

TOPS = (1, 5, 10)
Score = Callable[[Measured], np.ndarray]
"""Returns scores f32 [c] of a graph's configurations; lower is predicted faster."""


@dataclass(frozen=True)
class GraphQuality:
    """Quality on one graph; slowdowns are relative to the best measured configuration."""

    name: str
    values: dict[str, float]


def graph_quality(graph: Measured, scores: np.ndarray) -> GraphQuality:
    """Returns the quality of scores, and of a random choice and the default for comparison."""
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
    return GraphQuality(graph.name, values)


def evaluate(graphs: Sequence[Measured], score: Score) -> list[GraphQuality]:
    """Returns the quality on each graph."""
    return [graph_quality(graph, score(graph)) for graph in graphs]


def summary(qualities: Sequence[GraphQuality]) -> dict[str, Any]:
    """Returns the number of graphs, and means over the graphs that have a value."""
    keys = dict.fromkeys(key for quality in qualities for key in quality.values)
    return {"graphs": len(qualities)} | {
        key: round(mean(q.values[key] for q in qualities if key in q.values), 4) for key in keys
    }
