"""The tensors of a kernel and how tiles cut them, independent of any tile."""

from typing import NamedTuple

import torch
from torch import Tensor

from hlorank_training.models.segment_batch import SegmentBatch

RANK = 6
CUTS = RANK + 2
"""Numbers that cut a dimension: the bounds of the output, and the length and the presence of a
reduction."""
SAME = 1e-3
"""Difference of logarithms of lengths that counts as none."""
_PARAMETER = 63
"""Opcode of a kernel's inputs."""
_HALO = 4
"""Maximum difference of an input's dimension to the output's in a stencil or a convolution."""
_NONE = -1e9
"""Marks a dimension that equals no other."""


class Shapes(NamedTuple):
    """The tensors of S kernels: minor-most dimensions first."""

    lengths: Tensor
    """[S,8,6N]: maps the ``CUTS`` of a tile to the logarithms of the lengths of all dimensions
    in one tile"""
    uncut: Tensor
    """[S,N,6]: those of a tile of no size without any reduction"""
    whole: Tensor
    """[S,N,6]: logarithms of the dimensions"""
    total: Tensor
    """[S,N]: logarithms of the numbers of elements"""
    largest: Tensor
    """[S,1]: that of the largest tensor"""
    at_output: Tensor
    """[S,N]: 1 at the output"""
    at_inputs: Tensor
    """[S,N]: 1 at the kernel's inputs"""
    no_inputs: Tensor
    """[S,N]: 0 at the inputs, and very negative elsewhere"""
    is_node: Tensor
    """[S,1,N]: 1 at real nodes"""

    @classmethod
    def of(cls, batch: SegmentBatch) -> "Shapes":
        """Computes the properties of kernels, once for all tiles of a kernel."""
        places = torch.arange(RANK)
        sizes = batch.dimensions() * batch.mask.unsqueeze(-1)
        at_output = batch.output_node()
        at_inputs = (batch.opcode == _PARAMETER).to(sizes.dtype) * batch.mask
        output = at_output.unsqueeze(1) @ sizes
        rank, output_rank = ((x > 0).to(sizes.dtype).sum(-1, keepdim=True) for x in (sizes, output))
        matches, reduced = _matches(sizes, output, rank == output_rank)
        whole = log_of(sizes)
        total = whole.sum(-1)
        # A dimension that follows an output dimension is as much shorter as the tile is; one that
        # is reduced has the tile's length along the reduction, or is whole if that is not tiled.
        fixed = whole - (matches * log_of(output).unsqueeze(-2)).sum(-1)
        cuts = torch.stack([reduced, -reduced * whole, fixed, whole], -1)
        # The place of each dimension, counted from the minor-most: [S,N,6,6].
        place = (places == (rank - 1 - places).unsqueeze(-1)).to(sizes.dtype)
        ordered = place @ torch.cat([matches, cuts], -1)
        follows, uncut, whole = ordered.split([CUTS, 1, 1], -1)
        return cls(
            follows.flatten(1, 2).mT,
            uncut.squeeze(-1),
            whole.squeeze(-1),
            total,
            total.amax(-1, keepdim=True),
            at_output,
            at_inputs,
            (1 - at_inputs) * _NONE,
            batch.mask.unsqueeze(1),
        )


def _matches(sizes: Tensor, output: Tensor, same_rank: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the output dimension that each dimension follows [S,N,6,6], or that it follows
    none [S,N,6].

    ``sizes`` is [S,N,6] and ``output`` [S,1,6]; a dimension in the same place has priority.
    """
    divided = torch.where(output > 1, output, _NONE)
    equal = (sizes.unsqueeze(-1) == divided.unsqueeze(-2)).to(sizes.dtype)
    in_place = (sizes == divided).to(sizes.dtype)
    count = equal.sum(-1)
    elsewhere = torch.relu(equal - in_place.unsqueeze(-1)) / count.clamp(min=1).unsqueeze(-1)
    some = count.clamp(max=1)
    near = (_near(sizes, output) & same_rank).to(sizes.dtype) * (1 - some)
    matches = elsewhere + (in_place + near).unsqueeze(-1) * torch.eye(RANK)
    return matches, (sizes > 1).to(sizes.dtype) - some - near


def _near(sizes: Tensor, output: Tensor) -> Tensor:
    """Finds dimensions a little longer than the output's in the same place, or twice as long."""
    long = torch.where(output > 2 * _HALO, output, _NONE)
    longer = sizes - long
    halo = (longer > 0) & (longer <= _HALO)
    return halo | (torch.abs(longer - long) <= 1)


def log_of(x: Tensor) -> Tensor:
    """Returns the logarithms of numbers, and 0 for those below 1."""
    return torch.log(x.clamp(min=1))
