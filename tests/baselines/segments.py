"""A graph as the encoder takes it: its segments, padded and stacked by size once."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Bucket:
    """The segments of one padded size N, one after the other."""

    opcode: np.ndarray
    """i64 [S,N]"""
    features: np.ndarray
    """f32 [S,N,140]"""
    operands: np.ndarray
    """f32 [S,N,N]: 1 where the row consumes the column"""
    mask: np.ndarray
    """f32 [S,N]: 1 for a real node"""
    slot: np.ndarray
    """i64 [S,N]: the slot of a layout that sets the node; the number of slots where none does"""
    tensors: dict[str, np.ndarray] = field(default_factory=dict)
    """f32 [S, ...]: what ``segment.onnx`` computes of the segments"""

    @property
    def nodes(self) -> int:
        """The padded size."""
        return self.opcode.shape[1]


@dataclass(frozen=True)
class Graph:
    """One graph or kernel."""

    buckets: tuple[Bucket, ...]


def read_graph(path: Path, sizes: Sequence[int]) -> Graph:
    """Read the arrays that ``hlorank graph features`` writes; ``sizes`` are the model's buckets."""
    with np.load(path) as arrays:
        data = {key: arrays[key] for key in arrays.files}
    kept, piece = data["pruned_node_ids"], data["pruned_segment"]
    pieces: dict[int, list[np.ndarray]] = {}
    for number in np.unique(piece):
        nodes = kept[piece == number]
        pieces.setdefault(next(size for size in sizes if size >= len(nodes)), []).append(nodes)
    return Graph(tuple(_bucket(data, size, pieces[size]) for size in sorted(pieces)))


def _bucket(data: dict[str, np.ndarray], size: int, pieces: list[np.ndarray]) -> Bucket:
    count, configurable = len(pieces), data.get("node_config_ids", np.empty(0, np.int64))
    edges = data["pruned_node_ids"][data["pruned_edge_index"]]
    bucket = Bucket(
        np.zeros((count, size), np.int64),
        np.zeros((count, size, data["node_feat"].shape[1]), np.float32),
        np.zeros((count, size, size), np.float32),
        np.zeros((count, size), np.float32),
        np.full((count, size), len(configurable), np.int64),
    )
    slot_of_node = np.full(len(data["node_opcode"]), len(configurable))
    slot_of_node[configurable] = np.arange(len(configurable))
    for segment, nodes in enumerate(pieces):
        inside = edges[np.isin(edges, nodes).all(1)]
        consumers, producers = np.searchsorted(nodes, inside).T
        bucket.opcode[segment, : len(nodes)] = data["node_opcode"][nodes]
        bucket.features[segment, : len(nodes)] = data["node_feat"][nodes]
        bucket.operands[segment, consumers, producers] = 1
        bucket.mask[segment, : len(nodes)] = 1
        bucket.slot[segment, : len(nodes)] = slot_of_node[nodes]
    return bucket
