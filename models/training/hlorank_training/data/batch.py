"""Encoder inputs of chosen configurations, with every distinct row once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hlorank_training.data.dataset import NOT_CONFIGURABLE, Graph, Segment

BUCKETS = (4, 8, 12, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 256, 384, 512)
"""Padded segment sizes in nodes. The cost of a row depends on its padded size; rows of different
sizes need separate blocks."""
INPUTS = ("opcode", "features", "operands", "mask", "segment", "config")


@dataclass(frozen=True)
class Bucket:
    """Rows of one padded size. ``inputs`` has the encoder's inputs in the order of ``INPUTS``."""

    inputs: tuple[np.ndarray, ...]
    row: np.ndarray
    """i64 [t]: indices of rows of this bucket"""
    configuration: np.ndarray
    """i64 [t]: indices of the configurations in the batch that their embeddings are added to"""


@dataclass(frozen=True)
class Batch:
    """Configurations of several graphs, concatenated."""

    buckets: tuple[Bucket, ...]
    runtimes: tuple[np.ndarray, ...]
    """Run times of each graph in nanoseconds, i64 [c]."""

    @property
    def configurations(self) -> int:
        """Number of configurations in the batch."""
        return sum(map(len, self.runtimes))


def make_batch(graphs: Sequence[Graph], chosen: Sequence[np.ndarray]) -> Batch:
    """Returns a batch of the ``chosen`` configuration indices of each graph."""
    pieces: dict[int, list[_Piece]] = {}
    offset = 0
    for graph, indices in zip(graphs, chosen, strict=True):
        for segment in graph.segments:
            used, row = np.unique(segment.choice[indices], return_inverse=True)
            piece = _Piece(segment, segment.local[used], row, offset)
            pieces.setdefault(bucket_of(len(segment.opcode)), []).append(piece)
        offset += len(indices)
    runtimes = tuple(g.runtimes[i] for g, i in zip(graphs, chosen, strict=True))
    return Batch(tuple(_bucket(size, pieces[size]) for size in sorted(pieces)), runtimes)


def bucket_of(nodes: int) -> int:
    """Returns the smallest padded size for a segment of ``nodes`` nodes."""
    return next(size for size in BUCKETS if size >= nodes)


@dataclass(frozen=True)
class _Piece:
    segment: Segment
    local: np.ndarray
    row: np.ndarray
    offset: int


def _bucket(size: int, pieces: list[_Piece]) -> Bucket:
    starts = np.cumsum([0] + [len(piece.local) for piece in pieces])
    segments = [piece.segment for piece in pieces]
    masks = [np.ones(len(segment.opcode), np.float32) for segment in segments]
    # Layouts are those of nodes, and tiles of whole kernels.
    local = [
        piece.local if piece.local.ndim == 2 else _padded(size, piece.local, 1, NOT_CONFIGURABLE)
        for piece in pieces
    ]
    inputs = (
        np.stack([_padded(size, segment.opcode) for segment in segments]),
        np.stack([_padded(size, segment.features) for segment in segments]),
        np.stack([_padded(size, _padded(size, one.operands), 1) for one in segments]),
        np.stack([_padded(size, mask) for mask in masks]),
        np.repeat(np.arange(len(pieces)), np.diff(starts)),
        np.concatenate(local),
    )
    row = np.concatenate([piece.row + start for piece, start in zip(pieces, starts, strict=False)])
    configuration = np.concatenate([np.arange(len(p.row)) + p.offset for p in pieces])
    return Bucket(inputs, row, configuration)


def _padded(size: int, array: np.ndarray, axis: int = 0, value: int = 0) -> np.ndarray:
    more = [(0, size - n if at == axis else 0) for at, n in enumerate(array.shape)]
    return np.pad(array, more, constant_values=value)


Encode = Callable[[tuple[np.ndarray, ...]], np.ndarray]
Head = Callable[[np.ndarray], np.ndarray]


def score(batch: Batch, encode: Encode, head: Head) -> np.ndarray:
    """Encodes the rows, sums embeddings per configuration, and applies the head: f32 [c]."""
    total: np.ndarray | None = None
    for bucket in batch.buckets:
        embedding = encode(bucket.inputs)
        if total is None:
            total = np.zeros((batch.configurations, embedding.shape[1]), np.float32)
        np.add.at(total, bucket.configuration, embedding[bucket.row])
    return head(total)
