"""Costs of a kernel, computed from its nodes: Kaufman 2021's static performance features.

They follow XLA's HloCostAnalysis as far as features and edges allow. A dot contracts one dimension,
and the smaller operand of a convolution is its kernel.
"""

import torch
from torch import Tensor, nn

from hlorank_training.data.dataset import Segment
from hlorank_training.models.segment_model import (
    BYTES_OF_TYPES,
    ELEMENTS,
    OPCODES,
    TYPES,
    SegmentBatch,
)

COSTS = 4
"""Floating point operations, bytes read, bytes written, and transcendental operations."""
_CONVOLUTION = 26
_DOT = 34
_FUSION = 41
_PARAMETER = 63
_REDUCE = 70
_REDUCE_WINDOW = 72
_TRANSCENDENTAL = (7, 30, 37, 38, 50, 51, 66, 81, 91, 94, 96, 103, 107, 120)
"""atan2, cosine, exponential (minus one), log (plus one), power, rsqrt, sine, sqrt, tanh, cbrt,
logistic and tan."""
_ELEMENTWISE = (1, 2, 15, 17, 19, 20, 21, 25, 32, 40, 46, 49, 52, 53, 54, 55, 57, 58, 59, 60, 65)
_ELEMENTWISE_TOO = (67, 71, 73, 80, 83, 87, 88, 89, 90, 95, 118)
_WINDOW = 44
_OUTPUT_FEATURE = 106
_LARGE = 1e30


class KernelCosts(nn.Module):
    """Maps segments to their four costs."""

    def __init__(self):
        super().__init__()
        self.register_buffer("bytes", torch.tensor(BYTES_OF_TYPES).float(), persistent=False)
        kinds = torch.zeros(OPCODES, 2)
        kinds[list(_ELEMENTWISE + _ELEMENTWISE_TOO), 0] = 1
        kinds[list(_TRANSCENDENTAL), 1] = 1
        self.register_buffer("kinds", kinds, persistent=False)

    def forward(self, batch: SegmentBatch) -> Tensor:
        """Returns the costs of every segment, raw: [S,4]."""
        elements = batch.features[..., ELEMENTS].clamp(min=1) * batch.mask
        size = elements * (batch.features[..., TYPES] @ self.bytes)
        elementwise, transcendental = self.kinds[batch.opcode].unbind(-1)
        costs = [
            elements * elementwise + _special(batch, elements),
            size * _read(batch),
            size * batch.output_node(),
            elements * transcendental,
        ]
        return torch.stack([cost.sum(-1) for cost in costs], -1)

    def of_segment(self, segment: Segment) -> Tensor:
        """Returns the costs of a measured segment: [1,4]."""
        arrays = (segment.opcode, segment.features, segment.operands)
        opcode, features, operands = (torch.from_numpy(array).unsqueeze(0) for array in arrays)
        no_rows = torch.zeros(0)
        mask = torch.ones(opcode.shape)
        return self(SegmentBatch(opcode, features, operands, mask, no_rows, no_rows))


def _read(batch: SegmentBatch) -> Tensor:
    """Returns 1 for parameters that a fusion consumes, or any if there is no fusion: [S,N]."""
    parameter = _is(batch, _PARAMETER)
    fusion = _is(batch, _FUSION)
    consumed = (batch.edges.mT @ fusion.unsqueeze(-1)).squeeze(-1).clamp(max=1)
    has_fusion = fusion.amax(-1, keepdim=True)
    return parameter * (consumed * has_fusion + 1 - has_fusion)


def _special(batch: SegmentBatch, elements: Tensor) -> Tensor:
    """Returns the operations of contractions, reductions and windows: [S,N]."""
    operand = elements.unsqueeze(1)
    largest = (batch.edges * operand).amax(-1)
    smallest = (batch.edges * operand + (1 - batch.edges) * _LARGE).amin(-1)
    window = batch.features[..., _WINDOW].clamp(min=1)
    return (
        _is(batch, _DOT) * 2 * elements * _contracted(batch, elements)
        + _is(batch, _CONVOLUTION) * 2 * elements * smallest / _output_features(batch)
        + _is(batch, _REDUCE) * (largest - elements).clamp(min=0)
        + _is(batch, _REDUCE_WINDOW) * elements * (window - 1)
    )


def _contracted(batch: SegmentBatch, elements: Tensor) -> Tensor:
    """Returns the length K of the dimension that a dot contracts, from |L||R| = |O| B K^2, in
    which B is the product of the batch dimensions: [S,N]."""
    dimensions = batch.dimensions()
    rank = (dimensions > 0).float().sum(-1, keepdim=True)
    batched = batch.edges @ rank - rank - 2
    places = torch.arange(dimensions.shape[-1])
    shared = torch.where(places < batched, dimensions.clamp(min=1), 1.0).prod(-1)
    logarithm = torch.log(elements.clamp(min=1))
    both = (batch.edges @ logarithm.unsqueeze(-1)).squeeze(-1)
    return torch.exp((both - logarithm - torch.log(shared)) / 2)


def _output_features(batch: SegmentBatch) -> Tensor:
    """Returns the size of the dimension of a convolution's output features: [S,N]."""
    dimensions = batch.dimensions()
    place = batch.features[..., _OUTPUT_FEATURE : _OUTPUT_FEATURE + 1]
    chosen = (torch.arange(dimensions.shape[-1]) == place).float()
    return (dimensions * chosen).sum(-1).clamp(min=1)


def _is(batch: SegmentBatch, opcode: int) -> Tensor:
    return (batch.opcode == opcode).float() * batch.mask
