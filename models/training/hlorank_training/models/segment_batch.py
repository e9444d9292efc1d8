"""The encoder's inputs, and quantities derived from the raw features for both tasks."""

from dataclasses import dataclass

import torch
from torch import Tensor

OPCODES = 128
FEATURES = 140
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
    """i64 [B,N,18] for layouts, f32 [B,24] for tiles"""

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
