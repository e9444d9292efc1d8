"""The tensors of a kernel and how both levels of a tile cut them, independent of any tile."""

from typing import NamedTuple

import torch
from torch import Tensor

from hlorank_training.models.segment_batch import SegmentBatch
from hlorank_training.models.tile_shapes import CUTS, RANK, SAME, Shapes

LEVELS = 2


class VectorShapes(NamedTuple):
    """The tensors of S kernels, dimensions before levels before nodes, so that long runs of numbers
    are adjacent. Minor-most dimensions are first."""

    lengths: Tensor
    """[S,16,12N]: maps the ``CUTS`` of both levels to the logarithms of the lengths of all
    dimensions in one tile of each level"""
    uncut: Tensor
    """[S,1,12N]: those of a tile of no size without any reduction"""
    whole: Tensor
    """[S,1,12N]: logarithms of the dimensions"""
    nearly_whole: Tensor
    """[S,2,2,N]: a little less than those of the two minor-most dimensions"""
    total: Tensor
    """[S,1,N]: logarithms of the numbers of elements"""
    largest: Tensor
    """[S,1]: that of the largest tensor"""
    at_output: Tensor
    """[S,1,N]: 1 at the output"""
    at_inputs: Tensor
    """[S,1,N]: 1 at the kernel's inputs"""
    no_inputs: Tensor
    """[S,1,N]: 0 at the inputs, and very negative elsewhere"""
    is_node: Tensor
    """[S,1,N]: 1 at real nodes"""

    @classmethod
    def of(cls, batch: SegmentBatch) -> "VectorShapes":
        """Computes the properties of kernels, once for all tiles of a kernel."""
        shapes = Shapes.of(batch)
        whole = _at_both_levels(shapes.whole)
        nodes = (shapes.total, shapes.at_output, shapes.at_inputs, shapes.no_inputs)
        total, at_output, at_inputs, no_inputs = (tensor.unsqueeze(1) for tensor in nodes)
        return cls(
            lengths=_lengths(batch, shapes),
            uncut=_at_both_levels(shapes.uncut).flatten(1).unsqueeze(1),
            whole=whole.flatten(1).unsqueeze(1),
            nearly_whole=whole[:, :2] - SAME,
            total=total,
            largest=shapes.largest,
            at_output=at_output,
            at_inputs=at_inputs,
            no_inputs=no_inputs,
            is_node=shapes.is_node,
        )


def _at_both_levels(dimensions: Tensor) -> Tensor:
    """Maps [S,N,6] to [S,6,2,N]."""
    return torch.stack([dimensions.mT] * LEVELS, 2)


def _lengths(batch: SegmentBatch, shapes: Shapes) -> Tensor:
    """Returns the ``lengths`` of tiles whose bounds have the minor-most dimension first."""
    ranks = (batch.dimensions() > 0).to(shapes.total.dtype).sum(-1, keepdim=True)
    rank = shapes.at_output.unsqueeze(1) @ ranks
    places = torch.arange(RANK)
    minor_first = (places.unsqueeze(-1) == rank - 1 - places).to(rank.dtype)
    bounds, reduction = shapes.lengths.split([RANK, CUTS - RANK], 1)
    one = torch.cat([minor_first @ bounds, reduction], 1)
    # [S,8,N,6] to [S,8,6,N], which both levels have apart from each other.
    one = one.unflatten(-1, (-1, RANK)).mT
    apart = torch.eye(LEVELS)[:, None, None, :, None]
    return (one[:, None, :, :, None] * apart).flatten(1, 2).flatten(2)
