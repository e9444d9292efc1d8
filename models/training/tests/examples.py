"""Random graphs with configurations, models that nobody trained, and features of small kernels."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from hlorank_training.data.dataset import Graph, Measured, Segment
from hlorank_training.registry import REGISTRY
from hlorank_training.whole_graphs.graph import WholeGraph


def example(
    task: str = "tile", nodes: int = 9, configs: int = 6, seed: int = 0, columns: int = 24
) -> WholeGraph:
    """A random graph of which a node consumes some of the nodes before it.

    Its configurations are i64 [C,K,18] for layouts and f32 [C,columns] for tiles.
    """
    random = np.random.default_rng(seed)
    features = random.integers(0, 50, (nodes, 140)).astype(np.float32)
    features[:, 134:] = random.integers(0, 6, (nodes, 6))
    inputs = {
        "opcode": random.integers(1, 120, nodes),
        "features": features,
        "edges": np.stack(np.nonzero(np.tril(random.random((nodes, nodes)) < 0.3, -1))),
    }
    config = random.integers(0, 512, (configs, columns)).astype(np.float32)
    if task == "layout":
        slots = np.sort(random.choice(nodes, max(nodes // 3, 1), replace=False))
        inputs["configurable"] = slots
        config = random.integers(-1, 6, (configs, len(slots), 18))
    return WholeGraph("example", inputs, config, 1000 + np.arange(configs), None)


def as_graph(given: WholeGraph) -> Graph:
    """The graph as one segment, as segment models take it."""
    opcode, features, edges = given.inputs.values()
    operands = np.zeros((len(opcode),) * 2, np.float32)
    operands[tuple(edges)] = 1
    choice = np.arange(len(given.config))
    segment = Segment(opcode, features, operands, given.config, choice)
    return Graph(given.name, (segment,), given.runtimes, None)


def form_for(kind: str, given: WholeGraph) -> Measured:
    """The graph as models of this kind take it."""
    return as_graph(given) if kind == "segment" else given


def untrained(task: str, architecture: str, **changes: Any) -> torch.nn.Module:
    """A model of preset ``small``, with changed settings, random weights and the statistics of two
    examples."""
    torch.manual_seed(0)
    entry = REGISTRY.find(task, architecture)
    graphs = [form_for(entry.model.kind, example(task, 12, seed=seed)) for seed in (0, 1)]
    settings = replace(entry.presets["small"].model, **changes)
    return entry.model.for_graphs(settings, graphs).eval()


def node_features(
    shapes: Sequence[Sequence[int]], dimensions: Sequence[Sequence[int]] = ()
) -> np.ndarray:
    """Raw features [n,140] of f32 nodes, of which the last one is the root: their shapes, and
    lists of dimensions."""
    features = np.zeros((len(shapes), 140), np.float32)
    features[-1, 0] = 1
    features[:, [13, 44]] = 1
    features[:, 28] = [np.prod(shape) for shape in shapes]
    for first, lists in ((21, shapes), (31, dimensions)):
        for row, values in zip(features, lists, strict=False):
            row[first : first + len(values)] = values
    return features
