"""Graphs as whole-graph models take them, and what the server gives such a model: nodes, chunks and
orders, which ``models/artifacts.md`` specifies."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

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


@dataclass(frozen=True)
class Permutations:
    """Orders of a batch, whose scores are averaged (TGraph's test-time augmentation)."""

    count: int
    """Number of orders, 1 to 64."""
    seed: int
    """Seed of the orders, 0 to 2^64 - 1."""

    def order(self, number: int, configs: int) -> np.ndarray:
        """Returns the configurations i64 [configs] in the order with this number."""
        of_order = _mix(_mix(np.array([self.seed], np.uint64)) ^ np.uint64(number))
        hashes = _mix(of_order ^ np.arange(configs, dtype=np.uint64))
        return np.argsort(hashes, kind="stable")


@dataclass(frozen=True)
class ServingRule:
    """The fields of the manifest that say what the server gives a whole-graph model."""

    chunk_configs: int
    """Maximum number of configurations of a chunk."""
    nodes: str = "all"
    """``all``, or ``pruned`` for the nodes that pruning keeps."""
    chunking: str = "full"
    """``full``, or ``even`` for chunks whose sizes differ by at most one."""
    permutations: Permutations | None = None

    def manifest_fields(self) -> dict[str, Any]:
        """Returns the fields that differ from the manifest's defaults, and ``chunk_configs``."""
        default = ServingRule(self.chunk_configs)
        changed = {
            key: value for key, value in asdict(self).items() if value != getattr(default, key)
        }
        return {"chunk_configs": self.chunk_configs} | changed

    def whole_batch(self) -> int:
        """Returns how many configurations show how a batch is cut and ordered; 0 if any do."""
        whole = self.chunking == "even" or self.permutations is not None
        return self.chunk_configs + 2 if whole else 0

    def graph(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Returns the inputs of the graph for the nodes that the model takes."""
        return pruned(inputs) if self.nodes == "pruned" else inputs

    def mean_scores(self, configs: int, score: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Scores the configurations of every chunk, and averages over the orders: f32 [configs]."""
        totals = np.zeros(configs)
        runs = np.zeros(configs)
        for chunk in self.chunks(configs):
            totals[chunk] += score(chunk)
            runs[chunk] += 1
        return (totals / runs).astype(np.float32)

    def chunks(self, configs: int) -> list[np.ndarray]:
        """Returns the configurations i64 [c] of each chunk, of all orders."""
        orders: Iterator[np.ndarray] = iter([np.arange(configs)])
        if self.permutations and configs > self.chunk_configs:
            numbers = range(self.permutations.count)
            orders = (self.permutations.order(number, configs) for number in numbers)
        return [chunk for order in orders for chunk in self._cut(order)]

    def _cut(self, order: np.ndarray) -> list[np.ndarray]:
        if self.chunking == "even":
            # The first parts get what cannot be divided.
            return np.array_split(order, -(-len(order) // self.chunk_configs))
        starts = range(0, len(order), self.chunk_configs)
        return [order[start : start + self.chunk_configs] for start in starts]


def _mix(state: np.ndarray) -> np.ndarray:
    """Returns one step of SplitMix64 on u64, which wraps around."""
    z = state + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
