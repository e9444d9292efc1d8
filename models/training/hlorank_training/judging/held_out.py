"""Quality of a model on held-out graphs, as recorded in its manifest."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

import numpy as np

from hlorank_training.data.dataset import Measured
from hlorank_training.data.prepare import Prepared
from hlorank_training.metrics.ranking import (
    kendall_tau,
    ordered_pair_accuracy,
    random_slowdown,
    top_slowdown,
)
from hlorank_training.reports.tables import QUALITY_HEAD, markdown, quality_cells, without_model

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


HOW = "whole graphs held out, chosen by the SHA-256 of their names"
HOW_FOLDERS = "whole graphs held out, as the folders of the data set say"


def held_out_quality(prepared: Prepared, score: Score) -> dict[str, Any]:
    """Returns means over the held-out graphs with the noise ceiling, and figures of every graph.

    Means over families without any training graph are separate, under ``unseen_family.``.
    """
    qualities = evaluate(prepared.graphs(prepared.split.test), score)
    unseen = [q for q in qualities if q.name in prepared.split.unseen_family]
    known = [q for q in qualities if q.name not in prepared.split.unseen_family]
    folders = any(source.part for source in prepared.sources.values())
    measured = {"split": HOW_FOLDERS if folders else HOW} | _means(prepared, known)
    if unseen:
        measured |= {f"unseen_family.{k}": v for k, v in _means(prepared, unseen).items()}
    return {"measured_quality": measured, "per_graph": {q.name: q.values for q in qualities}}


def _means(prepared: Prepared, qualities: Sequence[GraphQuality]) -> dict[str, Any]:
    """Returns means under flat keys, since the server transmits a map of names to numbers."""
    ceilings = [prepared.sources[quality.name].noise_ceiling for quality in qualities]
    known = [ceiling for ceiling in ceilings if ceiling is not None]
    means = summary(qualities)
    return means | ({"noise_ceiling": round(sum(known) / len(known), 4)} if known else {})


def quality_table(prepared: Prepared, quality: dict[str, Any]) -> str:
    """Returns a Markdown table of every held-out graph and the means, with noise ceilings."""
    measured = quality["measured_quality"]
    rows = [
        [name, *quality_cells(values), _ceiling(prepared.sources[name].noise_ceiling)]
        for name, values in sorted(quality["per_graph"].items())
    ]
    for label, prefix in (("mean", ""), ("mean, unseen families", "unseen_family.")):
        if f"{prefix}kendall_tau" in measured:
            ceiling = _ceiling(measured.get(f"{prefix}noise_ceiling"))
            rows.append([label, *quality_cells(measured, prefix), ceiling])
    rows += [[*row, ""] for row in without_model(measured)]
    return markdown(["", *QUALITY_HEAD, "noise ceiling"], rows)


def _ceiling(tau: float | None) -> str:
    return "" if tau is None else f"{tau:.2f}"
