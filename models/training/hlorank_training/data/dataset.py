"""Graphs with their measured configurations, divided into the segments that a model encodes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, Self, TypeVar

import numpy as np

NOT_CONFIGURABLE = -2
"""Layout value of a node that is not configurable."""


@dataclass(frozen=True)
class Segment:
    """One segment of a graph, as the featurizer cut it: everything its embedding depends on."""

    opcode: np.ndarray
    """i64 [n]"""
    features: np.ndarray
    """f32 [n, 140], raw"""
    operands: np.ndarray
    """f32 [n, n]: 1 where the row consumes the column"""
    local: np.ndarray
    """Distinct local configurations: i64 [u, n, 18] for layouts, f32 [u, 24] for tiles, or [u, 222]
    with the columns of loops."""
    choice: np.ndarray
    """i64 [c]: index of each configuration's local configuration"""


@dataclass(frozen=True)
class Graph:
    """One graph or kernel with its configurations."""

    name: str
    segments: tuple[Segment, ...]
    runtimes: np.ndarray
    """i64 [c], nanoseconds"""
    default_runtime: int | None
    """Run time of the compiler's choice in nanoseconds, if it was measured."""
    family: str = ""
    """Class of programs that the graph belongs to, if known."""

    def choices(self) -> np.ndarray:
        """Returns one row per configuration; equal rows are equal configurations: i64 [c,s]."""
        return np.stack([segment.choice for segment in self.segments], 1)

    def subset(self, chosen: np.ndarray) -> "Graph":
        """Returns the graph with the ``chosen`` configurations."""
        segments = tuple(replace(s, choice=s.choice[chosen]) for s in self.segments)
        return replace(self, segments=segments, runtimes=self.runtimes[chosen])


def read_graph(path: Path, name: str) -> Graph:
    """Reads the arrays that ``hlorank graph features`` wrote."""
    with np.load(path) as arrays:
        data = {key: arrays[key] for key in arrays.files}
    # The featurizer's segments, so that training and serving use the same.
    kept = data["pruned_node_ids"]
    piece = data["pruned_segment"]
    edges = kept[data["pruned_edge_index"]]
    segments = [_segment(data, kept[piece == number], edges) for number in np.unique(piece)]
    return Graph(name, tuple(segments), data["config_runtime"], default_runtime(data))


def read_graph_with_loops(path: Path, name: str) -> Graph:
    """Reads a graph as ``read_graph`` does; tiles have the columns of loops behind their own."""
    graph = read_graph(path, name)
    with np.load(path) as arrays:
        loops = arrays["config_loops"]
    segments = []
    for segment in graph.segments:
        _, first = np.unique(segment.choice, return_index=True)
        segments.append(replace(segment, local=np.concatenate([segment.local, loops[first]], 1)))
    return replace(graph, segments=tuple(segments))


def default_runtime(data: Mapping[str, np.ndarray]) -> int | None:
    """Returns the run time of the compiler's choice in nanoseconds, if it was measured."""
    if "config_feat" in data:
        # TpuGraphs' files have it; an export of a server's measurements does not.
        known = "config_runtime_normalizers" in data
        return int(data["config_runtime_normalizers"][0]) if known else None
    untouched = (data["node_config_feat"] == -1).all((1, 2))
    return int(data["config_runtime"][untouched][0]) if untouched.any() else None


def _layout_local(data: dict[str, np.ndarray], nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    configurable = data["node_config_ids"]
    slots = np.flatnonzero(np.isin(configurable, nodes))
    positions = np.searchsorted(nodes, configurable[slots])
    entries = data["node_config_feat"][:, slots].astype(np.int64)
    flat, choice = np.unique(entries.reshape(len(entries), -1), axis=0, return_inverse=True)
    local = np.full((len(flat), len(nodes), 18), NOT_CONFIGURABLE, np.int64)
    local[:, positions] = flat.reshape(len(flat), len(slots), 18)
    return local, choice


def _segment(data: dict[str, np.ndarray], nodes: np.ndarray, edges: np.ndarray) -> Segment:
    if "config_feat" in data:
        # A tile belongs to the kernel, so every segment has the same one.
        tiles, choice = np.unique(data["config_feat"], axis=0, return_inverse=True)
        local = tiles.astype(np.float32)
    else:
        local, choice = _layout_local(data, nodes)
    inside = edges[np.isin(edges, nodes).all(1)]
    operands = np.zeros((len(nodes), len(nodes)), np.float32)
    consumers, producers = np.searchsorted(nodes, inside).T
    operands[consumers, producers] = 1
    opcode = data["node_opcode"][nodes].astype(np.int64)
    return Segment(opcode, data["node_feat"][nodes], operands, local, choice.reshape(-1))


class Measured(Protocol):
    """What training and evaluation need of a graph with configurations, in whatever form."""

    name: str
    family: str
    runtimes: np.ndarray
    """i64 [c], nanoseconds"""
    default_runtime: int | None

    def choices(self) -> np.ndarray:
        """Returns one row per configuration; equal rows are equal configurations."""

    def subset(self, chosen: np.ndarray) -> Self:
        """Returns the graph with the ``chosen`` configurations."""


SameForm = TypeVar("SameForm", bound=Measured)


def distinct(graph: SameForm, repeated: str = "mean") -> SameForm:
    """Returns the graph with every distinct configuration once, at its mean or smallest run time.

    Real data have repetitions, which would only give more weight to some configurations: of 47,712
    AlexNet configurations, 29,905 are distinct.
    """
    _, first, member = np.unique(graph.choices(), axis=0, return_index=True, return_inverse=True)
    if len(first) == len(graph.runtimes):
        return graph
    # In the order in which they come first, which is the same for all forms of a graph.
    order = np.argsort(first)
    member = member.reshape(-1)
    if repeated == "smallest":
        runtimes = np.full(len(first), np.iinfo(np.int64).max)
        np.minimum.at(runtimes, member, graph.runtimes)
    else:
        mean = np.bincount(member, graph.runtimes.astype(np.float64)) / np.bincount(member)
        runtimes = np.maximum(mean, 1).astype(np.int64)
    return replace(graph.subset(first[order]), runtimes=runtimes[order])
