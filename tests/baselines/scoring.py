"""The shipped encoder and head in ONNX Runtime: scores of configurations, plain or deduplicated."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import onnxruntime

from configurations import Configurations
from segments import Bucket, Graph, read_graph

Mode = Literal["plain", "deduplicated"]
SEGMENT_INPUTS = ("opcode", "features", "operands", "mask")
BATCH_NODES = 2048
"""Nodes that go through the encoder at once, padding included: what fits a core's cache."""


@dataclass(frozen=True)
class Rows:
    """What the encoder evaluates of one bucket, ascending by segment."""

    segment: np.ndarray
    """i64 [r]"""
    config: np.ndarray
    """i64 [r]: a configuration that shows the segment what the row stands for"""
    row_of: np.ndarray
    """i64 [S, c]: the row of each segment and configuration"""


class Model:
    """One artifact of the registry, in sessions of so many threads."""

    def __init__(self, folder: Path, threads: int):
        self.buckets: list[int] = json.loads((folder / "manifest.json").read_text())["buckets"]
        self._segment = self.session(folder / "segment.onnx", threads)
        self._encoder = self.session(folder / "encoder.onnx", threads)
        self._head = self.session(folder / "head.onnx", threads)

    def session(self, path: Path, threads: int) -> onnxruntime.InferenceSession:
        """Opens a session of one file."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def read_graph(self, path: Path) -> Graph:
        """A graph as this model takes it, with what the model computes of its segments alone."""
        graph = read_graph(path, self.buckets)
        return replace(graph, buckets=tuple(self._with_tensors(bucket) for bucket in graph.buckets))

    def _with_tensors(self, bucket: Bucket) -> Bucket:
        names = [output.name for output in self._segment.get_outputs()]
        inputs = {name: getattr(bucket, name) for name in SEGMENT_INPUTS}
        tensors = self._segment.run(names, inputs)
        return replace(bucket, tensors=dict(zip(names, tensors, strict=True)))

    def score(self, graph: Graph, configurations: Configurations, mode: Mode) -> np.ndarray:
        """Scores f32 [c]: rows encoded, embeddings summed per configuration, head applied."""
        choose = _every_row if mode == "plain" else _distinct_rows
        total: np.ndarray | None = None
        for bucket in graph.buckets:
            rows = choose(bucket, configurations)
            embedding = self._encode(bucket, configurations, rows)
            for row in rows.row_of:
                added = embedding[row]
                total = added if total is None else np.add(total, added, out=total)
        return self._head.run(None, {"sum": total})[0]

    def _encode(self, bucket: Bucket, configurations: Configurations, rows: Rows) -> np.ndarray:
        size = max(2, BATCH_NODES // bucket.nodes)
        starts = range(0, len(rows.segment), size)
        batches = [
            self._encode_batch(
                bucket,
                configurations,
                rows.segment[start : start + size],
                rows.config[start : start + size],
            )
            for start in starts
        ]
        return batches[0] if len(batches) == 1 else np.concatenate(batches)

    def _encode_batch(
        self,
        bucket: Bucket,
        configurations: Configurations,
        segment: np.ndarray,
        config: np.ndarray,
    ) -> np.ndarray:
        config = configurations.encoder_input(bucket, segment, config)
        first, last = segment[0], segment[-1]
        # Rows of one segment share its tensors.
        rows = slice(first, first + 1) if first == last else segment
        inputs = {name: tensor[rows] for name, tensor in bucket.tensors.items()}
        return self._encoder.run(None, inputs | _configuration(config))[0]


def _configuration(config: np.ndarray) -> dict[str, np.ndarray]:
    """The input of an encoder in two parts: layouts as distinct entries and each node's entry."""
    if config.ndim == 2:
        return {"config": config}
    rows, nodes, values = config.shape
    # A number per entry is faster to compare than its 18 values from -2 to 5.
    numbers = (config.reshape(-1, values) + 2) @ 8 ** np.arange(values)
    _, first, which = np.unique(numbers, return_index=True, return_inverse=True)
    entries = config.reshape(-1, values)[first]
    return {"entries": entries, "config": which.reshape(rows, nodes)}


def best(scores: np.ndarray, top_k: int) -> np.ndarray:
    """Configuration numbers by ascending score, ties by number; the ``top_k`` first, 0 for all."""
    ranking = np.argsort(scores, kind="stable")
    return ranking[:top_k] if top_k else ranking


def _every_row(bucket: Bucket, configurations: Configurations) -> Rows:
    segments, count = len(bucket.opcode), configurations.count
    return Rows(
        np.repeat(np.arange(segments), count),
        np.tile(np.arange(count), segments),
        np.arange(segments * count).reshape(segments, count),
    )


def _distinct_rows(bucket: Bucket, configurations: Configurations) -> Rows:
    first, which = zip(
        *(configurations.distinct(bucket, segment) for segment in range(len(bucket.opcode))),
        strict=True,
    )
    counts = np.array([len(configs) for configs in first])
    starts = np.cumsum(counts) - counts
    return Rows(
        np.repeat(np.arange(len(counts)), counts),
        np.concatenate(first),
        np.stack(which) + starts[:, None],
    )
