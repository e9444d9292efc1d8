"""Graphs as whole-graph models take them: the inputs of ``model.onnx``, with measured run times."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from hlorank_training.data.dataset import default_runtime

Inputs = dict[str, np.ndarray]
"""Inputs of ``model.onnx`` that belong to the graph, by name: opcode i64 [N], features f32 [N,140],
edges i64 [2,E] (consumers, producers), and for layouts configurable i64 [K]."""


@dataclass(frozen=True)
class WholeGraph:
    """One graph or kernel with its configurations, not divided into segments."""

    name: str
    inputs: Inputs
    config: np.ndarray
    """i8 [c,K,18] for layouts, f32 [c,24] for tiles"""
    runtimes: np.ndarray
    """i64 [c], nanoseconds"""
    default_runtime: int | None
    """Run time of the compiler's choice in nanoseconds, if it was measured."""
    family: str = ""
    """Class of programs that the graph belongs to, if known."""

    def choices(self) -> np.ndarray:
        """Returns one row per configuration; equal rows are equal configurations."""
        return self.config.reshape(len(self.config), -1)

    def subset(self, chosen: np.ndarray) -> "WholeGraph":
        """Returns the graph with the ``chosen`` configurations."""
        return replace(self, config=self.config[chosen], runtimes=self.runtimes[chosen])


def read_whole_graph(path: Path, name: str) -> WholeGraph:
    """Reads the arrays that ``hlorank graph features`` wrote."""
    with np.load(path) as arrays:
        inputs, config = model_inputs(arrays)
        runtimes = arrays["config_runtime"]
        default = default_runtime(arrays)
    # Layouts are between -1 and 5, and large collections have gigabytes of them.
    small = config if config.dtype == np.float32 else config.astype(np.int8)
    return WholeGraph(name, inputs, small, runtimes, default)


def read_pruned_graph(path: Path, name: str) -> WholeGraph:
    """Reads a layout graph with the nodes that pruning keeps."""
    graph = read_whole_graph(path, name)
    return replace(graph, inputs=pruned(graph.inputs))


def model_inputs(arrays: Mapping[str, np.ndarray]) -> tuple[Inputs, np.ndarray]:
    """Returns the inputs of ``model.onnx`` from a features file: the graph's, and ``config``."""
    graph = {
        "opcode": arrays["node_opcode"].astype(np.int64),
        "features": arrays["node_feat"],
        "edges": np.ascontiguousarray(arrays["edge_index"].T),
    }
    if "config_feat" in arrays:
        return graph, arrays["config_feat"]
    configurable = arrays["node_config_ids"].astype(np.int64)
    return graph | {"configurable": configurable}, arrays["node_config_feat"].astype(np.int64)


def pruned(inputs: Inputs) -> Inputs:
    """Returns a layout graph's inputs for the nodes that pruning keeps, in ascending order.

    Edges with a configurable end are kept, and so are their ends and every configurable node.
    """
    edges = inputs["edges"]
    configurable = inputs["configurable"]
    edges = edges[:, np.isin(edges, configurable).any(0)]
    nodes = np.union1d(edges, configurable).astype(np.int64)
    return {
        "opcode": inputs["opcode"][nodes],
        "features": inputs["features"][nodes],
        "edges": np.searchsorted(nodes, edges),
        "configurable": np.searchsorted(nodes, configurable),
    }
