"""Ranking quality on held-out graphs, beside what needs no model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from .dataset import Graph
from .metrics import kendall_tau, ordered_pair_accuracy, random_slowdown, top_slowdown
from .schema import ModuleTuningData

TOPS = (1, 5, 10)


@dataclass(frozen=True)
class GraphQuality:
    """One graph's quality; slowdowns are relative to the best measured configuration."""

    name: str
    values: dict[str, float]


def graph_quality(graph: Graph, scores: np.ndarray) -> GraphQuality:
    """Quality of scores, with the expectation of a random choice and the default beside it."""
    runtimes = graph.runtimes
    values = {
        "kendall_tau": kendall_tau(scores, runtimes),
        "ordered_pair_accuracy": ordered_pair_accuracy(scores, runtimes),
        "default_slowdown": float(graph.default_runtime / runtimes.min() - 1),
    }
    for count in TOPS:
        values[f"top{count}_slowdown"] = top_slowdown(scores, runtimes, count)
        values[f"random_top{count}_slowdown"] = random_slowdown(runtimes, count)
    return GraphQuality(graph.name, values)


def evaluate(graphs: Sequence[Graph], score: Callable[[Graph], np.ndarray]) -> list[GraphQuality]:
    """Quality per graph."""
    return [graph_quality(graph, score(graph)) for graph in graphs]


def summary(qualities: Sequence[GraphQuality]) -> dict[str, Any]:
    """Means over graphs, and how many there are."""
    keys = qualities[0].values if qualities else {}
    means = {key: round(mean(q.values[key] for q in qualities), 4) for key in keys}
    return {"graphs": len(qualities), **means}


def moved_bytes(file: Path) -> np.ndarray:
    """A layout baseline without a model: bytes of tensors whose minor-most dimension changes.

    Per run of a layout tuning file, f64 [runs].
    """
    data = ModuleTuningData.FromString(file.read_bytes())
    tensors = _tensor_shapes(data)
    return np.array(
        [_moved(run.module_config.layout_config.nodes, tensors) for run in data.runs], np.float64
    )


def _tensor_shapes(data) -> list[list[list[int]]]:
    flat = [i for computation in data.module.computations for i in computation.instructions]
    shapes = {instruction.id: list(instruction.shape.dimensions) for instruction in flat}
    nodes = [flat[number] for number in data.config_index_to_node]
    return [[shapes[i] for i in (node.id, *node.operand_ids[:2])] for node in nodes]


def _moved(nodes, tensors) -> float:
    total = 0
    for node, shapes in zip(nodes, tensors, strict=True):
        for tensor, shape in zip(node.tensors, shapes, strict=False):
            if tensor.dims and tensor.dims[0] != len(shape) - 1:
                total += 4 * int(np.prod(shape))
    return float(total)
