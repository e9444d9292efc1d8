"""The tensors of a kernel and how both levels of a tile cut them, independent of any tile."""

from math import log
from typing import NamedTuple

import torch
from torch import Tensor

from hlorank_training.models.segment_model import SegmentBatch
from hlorank_training.models.tile_part import CUTS, RANK, SAME, VECTOR, Shapes
from hlorank_training.models.vector_words import LEVELS

MINOR = LEVELS
NEXT = 2 * LEVELS
OTHERS = (RANK - 3) * LEVELS
LACKS = (MINOR, NEXT, OTHERS, MINOR, NEXT, NEXT)
"""Numbers that a tile gives for each node, each by level. The first three are how much shorter a
piece is than the tensor, in logarithms: along the minor-most dimension, the next two, and the
others. Then come how much shorter the minor-most dimension is than a vector, or than the tensor if
that is shorter, and two numbers that are 0 or very large for each of the next two dimensions: if
the piece has less than the whole minor-most dimension, and less than the whole one that follows."""
_STEEP = 1e9
"""Makes differences of logarithms very large."""
_NONE = -1e9
"""Logarithm of what is not there."""


class VectorShapes(NamedTuple):
    """The tensors of S kernels, nodes last, so that long runs of numbers are adjacent. Minor-most
    dimensions are first."""

    lacks: Tensor
    """[S,15,22N]: maps what cuts dimensions to ``LACKS``, which are at least 0"""
    following: Tensor
    """[S,4,N]: logarithms of the two dimensions after the minor-most one, for both levels"""
    vectors: Tensor
    """[S,2,N]: that of the minor-most dimension, at most of a vector, for both levels"""
    logarithms: Tensor
    """[S,11,N]: those of a node, if a tile were all of the tensor: amounts and 1, the elements that
    a step reads, and tiles and steps"""

    @classmethod
    def of(cls, batch: SegmentBatch, shapes: Shapes) -> "VectorShapes":
        """Computes the properties of kernels, once for all tiles of a kernel."""
        whole = shapes.whole.mT.unsqueeze(2).expand(-1, -1, LEVELS, -1)
        vectors = whole[:, 0].clamp(max=log(VECTOR))
        return cls(
            lacks=_lacks(_lengths(batch, shapes), whole, vectors),
            following=whole[:, 1:3].flatten(1, 2),
            vectors=vectors,
            logarithms=_logarithms(shapes),
        )


def _lengths(batch: SegmentBatch, shapes: Shapes) -> Tensor:
    """Maps what cuts dimensions to the logarithms of the lengths of pieces [S,15,6,2,N]. Bounds of
    tiles have the minor-most dimension first."""
    ranks = (batch.dimensions() > 0).to(shapes.total.dtype).sum(-1, keepdim=True)
    rank = shapes.at_output.unsqueeze(1) @ ranks
    places = torch.arange(RANK)
    minor_first = (places.unsqueeze(-1) == rank - 1 - places).to(rank.dtype)
    bounds, reduction = shapes.lengths.split([RANK, CUTS - RANK], 1)
    one = torch.cat([minor_first @ bounds, reduction], 1)
    # [S,8,N,6] to [S,8,6,N], which both levels have apart from each other.
    one = one.unflatten(-1, (-1, RANK)).mT
    apart = torch.eye(LEVELS)[:, None, None, :, None]
    both = (one[:, None, :, :, None] * apart).flatten(1, 2)
    # A workgroup computes whole reductions.
    both = torch.cat([both[:, :RANK], both[:, CUTS:]], 1)
    uncut = shapes.uncut.mT[:, None, :, None].expand(-1, -1, -1, LEVELS, -1)
    return torch.cat([both, uncut], 1)


def _lacks(lengths: Tensor, whole: Tensor, vectors: Tensor) -> Tensor:
    """Returns ``lacks``, given lengths [S,15,6,2,N], whole ones [S,6,2,N] and those of vectors
    [S,2,N]."""
    one = torch.eye(lengths.shape[1])[-1][:, None, None, None]
    lacks = one * whole.unsqueeze(1) - lengths
    filled = one * vectors[:, None, None] - lengths[:, :, :1]
    minor_cut, next_cut = ((lacks[:, :, :2] - one * SAME) * _STEEP).split(1, 2)
    parts = [lacks, filled, minor_cut, minor_cut, torch.zeros_like(next_cut), next_cut]
    return torch.cat(parts, 2).flatten(2)


def _logarithms(shapes: Shapes) -> Tensor:
    """Returns ``logarithms`` by level. Amounts are the elements and the steps, relative to the
    elements of the largest tensor. If several outputs are the largest, the maximum of their tiles
    counts; only outputs of one element are."""
    total = shapes.total.unsqueeze(1)
    padding = (1 - shapes.is_node) * _NONE
    steps = padding - shapes.largest.unsqueeze(1)
    elements = total + steps
    no_inputs = shapes.no_inputs.unsqueeze(1)
    no_output = (1 - torch.ceil(shapes.at_output).unsqueeze(1)) * _NONE
    work = [total + no_inputs, no_output, no_inputs]
    at_both_levels = [part for part in work for _ in range(LEVELS)]
    return torch.cat([*[elements, steps] * LEVELS, padding, *at_both_levels], 1)
