"""What every segment model has: an encoder of rows, and a head of summed embeddings."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from hlorank_training.data.batch import Batch, make_batch
from hlorank_training.data.dataset import Graph
from hlorank_training.data.prepare import Form
from hlorank_training.models.graph_layers import rows_of

OPCODES = 128
FEATURES = 140
TILE_FEATURES = 24
LOOP_FEATURES = 198
"""Columns of a tile's loops, behind its features."""
TYPES = slice(2, 21)
"""Feature columns of the type of elements, one-hot."""
BYTES_OF_TYPES = (0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 2, 8, 16, 0, 0, 0)
"""Bytes of an element, by the order of these columns."""
ELEMENTS = 28
"""Feature column of the number of elements."""
_DIMENSIONS = slice(21, 27)
"""Feature columns of the output shape, the major dimension first."""


@dataclass(frozen=True)
class SegmentBatch:
    """Rows of (segment, local configuration): S segments padded to N nodes, B rows."""

    opcode: Tensor
    """i64 [S,N]"""
    features: Tensor
    """f32 [S,N,140], raw"""
    edges: Tensor
    """f32 [S,N,N]: 1 where the row consumes the column and both are real nodes"""
    mask: Tensor
    """f32 [S,N]: 1 for a real node"""
    segment: Tensor | None = None
    """i64 [B]: index of each row's segment"""
    config: Tensor | None = None
    """i64 [B,N,18] for layouts, f32 [B,24] for tiles, or [B,222] with the columns of loops"""

    def dimensions(self) -> Tensor:
        """Returns output shapes [S,N,6]; missing dimensions are 0."""
        return self.features[..., _DIMENSIONS]

    def elements(self) -> Tensor:
        """Returns the number of elements of every node's output: [S,N,1]."""
        return self.dimensions().clamp(min=1).prod(-1, keepdim=True)

    def output_node(self) -> Tensor:
        """Returns the root with the largest result, one-hot [S,N].

        Every computation has a root; the roots of reductions are scalars.
        """
        root = self.features[..., 0] * self.mask
        size = torch.log1p(self.elements().squeeze(-1)) * root
        largest = (size == size.amax(-1, keepdim=True)).to(size.dtype) * root
        return largest / largest.sum(-1, keepdim=True).clamp(min=1)


class SegmentEncoder(nn.Module):
    """Maps the six inputs of ``encoder.onnx`` to embeddings; subclasses define ``embed``."""

    def forward(
        self,
        opcode: Tensor,
        features: Tensor,
        operands: Tensor,
        mask: Tensor,
        segment: Tensor,
        config: Tensor,
    ) -> Tensor:
        """Maps opcode i64 [S,N], features f32 [S,N,140], operands f32 [S,N,N], mask f32 [S,N],
        segment i64 [B] and config i64 [B,N,18] or f32 [B,24] to embeddings f32 [B,D]."""
        return self.embed(segment_batch(opcode, features, operands, mask, segment, config))

    def embed(self, batch: SegmentBatch) -> Tensor:
        """Maps a batch to embeddings f32 [B,D]."""
        raise NotImplementedError

    def fit(self, graphs: Sequence[Graph]) -> None:
        """Computes the statistics of the training graphs, which scale the inputs."""
        raise NotImplementedError


class SplitEncoder(SegmentEncoder):
    """An encoder of two parts: ``segment.onnx`` and ``encoder.onnx``.

    The first computes what depends on a segment alone, once for all its rows. Subclasses define
    ``tensors``, ``of_segments`` and ``of_rows``.
    """

    tensors: tuple[str, ...]
    """Names of what ``of_segments`` returns, the outputs of ``segment.onnx``."""

    def of_segments(self, batch: SegmentBatch) -> tuple[Tensor, ...]:
        """Computes what depends on the segments alone: each f32 [S, ...]."""
        raise NotImplementedError

    def of_rows(self, tensors: tuple[Tensor, ...], *configuration: Tensor) -> Tensor:
        """Maps the tensors of every row's segment, f32 [B, ...], and the rows' local configurations
        to embeddings [B,D].

        In an exported model, the tensors are [1, ...] if all rows have one segment. So every
        operation on them has to broadcast.
        """
        raise NotImplementedError

    def configuration_inputs(self, config: Tensor) -> tuple[Tensor, ...]:
        """Returns local configurations in the form of ``of_rows``."""
        return (config,)

    def embed(self, batch: SegmentBatch) -> Tensor:
        tensors = tuple(rows_of(tensor, batch.segment) for tensor in self.of_segments(batch))
        return self.of_rows(tensors, *self.configuration_inputs(batch.config))


def segment_batch(
    opcode: Tensor, features: Tensor, operands: Tensor, mask: Tensor, *rows: Tensor
) -> SegmentBatch:
    """Removes the edges of padding nodes, and the opcodes that no model knows."""
    edges = operands * mask.unsqueeze(-1) * mask.unsqueeze(-2)
    return SegmentBatch(opcode.clamp(0, OPCODES - 1), features, edges, mask, *rows)


class SegmentModel(nn.Module):
    """An encoder of rows (segment, local configuration) and a head, trained together.

    A subclass is created from its settings alone, and defines ``architecture``.
    """

    kind = "segment"
    architecture: str
    """Name in the registry and in manifests."""

    def __init__(self, settings: Any, embedding: int, encoder: SegmentEncoder, head: nn.Module):
        """``settings`` is a frozen dataclass that has ``task``, ``layout`` or ``tile``.

        ``encoder`` maps the six inputs of ``encoder.onnx`` to embeddings f32 [B,D], whose width D
        is ``embedding``, and ``head`` sums of them f32 [C,D] to scores f32 [C].
        """
        super().__init__()
        self.settings = settings
        self.embedding = embedding
        self.encoder = encoder
        self.head = head

    @classmethod
    def form(cls, _: Any) -> Form:
        """Returns the form in which a model takes graphs."""
        return Form()

    @classmethod
    def for_graphs(cls, settings: Any, graphs: Sequence[Graph]) -> Self:
        """Returns an untrained model with the statistics of the training graphs."""
        model = cls(settings)
        model.fit(graphs)
        return model

    def fit(self, graphs: Sequence[Graph]) -> None:
        """Computes the statistics of the training graphs, which scale the inputs."""
        self.encoder.fit(graphs)

    def scores(self, graphs: Sequence[Graph], chosen: Sequence[np.ndarray]) -> Tensor:
        """Returns scores f32 [c], with gradients, of the ``chosen`` configurations of each graph,
        one graph after the other."""
        return self.batch_scores(make_batch(graphs, chosen))

    def batch_scores(self, batch: Batch) -> Tensor:
        """Returns scores f32 [c] of a batch, with gradients."""
        device = next(self.parameters()).device

        def tensor(array: np.ndarray) -> Tensor:
            return torch.from_numpy(array).to(device)

        total = torch.zeros(batch.configurations, self.embedding, device=device)
        for bucket in batch.buckets:
            embedding = self.encoder(*map(tensor, bucket.inputs))
            rows = embedding[tensor(bucket.row)]
            total = total.index_add(0, tensor(bucket.configuration), rows)
        return self.head(total)


def node_rows(graphs: Sequence[Graph]) -> Tensor:
    """Returns the raw features of all nodes: f32 [n,140]."""
    segments = [segment for graph in graphs for segment in graph.segments]
    return torch.from_numpy(np.concatenate([segment.features for segment in segments]))


def tile_rows(graphs: Sequence[Graph]) -> Tensor:
    """Returns the raw tiles of all configurations: f32 [n,24], or [n,222] with loops."""
    segments = [segment for graph in graphs for segment in graph.segments]
    return torch.from_numpy(np.concatenate([segment.local for segment in segments]))
