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
            pieces.setdefault(bucket_of(len(segment.opcode)), []).append(
                _Piece(segment, *_rows(segment, indices), offset)
            )
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


def _rows(segment: Segment, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    used, row = np.unique(segment.choice[indices], return_inverse=True)
    return segment.local[used], row


def _bucket(size: int, pieces: list[_Piece]) -> Bucket:
    starts = np.cumsum([0] + [len(piece.local) for piece in pieces])
    inputs = (
        _stack(size, [piece.segment.opcode for piece in pieces]),
        _stack(size, [piece.segment.features for piece in pieces]),
        np.stack([_pad_square(size, piece.segment.operands) for piece in pieces]),
        _stack(size, [np.ones(len(piece.segment.opcode), np.float32) for piece in pieces]),
        np.repeat(np.arange(len(pieces)), np.diff(starts)),
        np.concatenate([_pad_local(size, piece.local) for piece in pieces]),
    )
    row = np.concatenate([piece.row + start for piece, start in zip(pieces, starts, strict=False)])
    configuration = np.concatenate([np.arange(len(p.row)) + p.offset for p in pieces])
    return Bucket(inputs, row, configuration)


def _stack(size: int, arrays: list[np.ndarray]) -> np.ndarray:
    return np.stack([_pad_first(size, array) for array in arrays])


def _pad_first(size: int, array: np.ndarray) -> np.ndarray:
    return np.pad(array, [(0, size - len(array))] + [(0, 0)] * (array.ndim - 1))


def _pad_square(size: int, array: np.ndarray) -> np.ndarray:
    return np.pad(array, [(0, size - len(array))] * 2)


def _pad_local(size: int, local: np.ndarray) -> np.ndarray:
    if local.ndim == 2:
        return local
    missing = size - local.shape[1]
    return np.pad(local, [(0, 0), (0, missing), (0, 0)], constant_values=NOT_CONFIGURABLE)


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
