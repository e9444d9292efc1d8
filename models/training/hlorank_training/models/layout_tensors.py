"""The tensors of a segment, independent of any layout configuration."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from hlorank_training.models.graph_layers import mean_weights
from hlorank_training.models.segment_batch import SegmentBatch

RANK = 6
"""Maximum dimensions of a tensor."""
COPIES = (1, 2, 1, 2, 0)
"""Tensors of a node's copies: arriving at two inputs, to their preferred orders, and its output."""
MEASURES = 3
"""Measures of a copy: its existence; the stride, in the order read, of the minor-most dimension of
the order written; and the same in the other direction."""
LARGEST = 16.0
"""Strides are measured relative to this, so that no measure exceeds 1."""
AMOUNTS = 3 * MEASURES
"""Amounts of copied data of a node, by kind of copy and measure."""
ELEMENTS = 2.0**16
"""Elements that count as one unit of copied data."""
_HOPS = 2
"""Maximum nodes without a choice that propagate an order; segments have no longer chains."""
_HALF_BITS = 2.0
"""Strides are in half bits, so that only that of a minor-most dimension is below 1."""
_CONVOLUTION = 26
_DOT = 34
_REDUCE = 70
_REDUCE_WINDOW = 72
_RESHAPE = 75
_PARTICULAR = (_CONVOLUTION, _DOT, _REDUCE, _REDUCE_WINDOW, _RESHAPE)
"""Operations with a preferred order; others accept any order."""
_CONVOLUTION_COLUMNS = slice(93, 107)
_INPUT_BATCH = 0
_INPUT_FEATURES = 1
_KERNEL_INPUT = 6
_KERNEL_OUTPUT = 7
_OUTPUT_BATCH = 12
_OUTPUT_FEATURES = 13


class LayoutTensors(NamedTuple):
    """Properties of the output and two inputs of every node.

    An order is represented by its strides: for each dimension, the logarithm of the distance of
    neighbours in elements, in half bits. Every node has the ``COPIES``; padding copies nothing.
    """

    asks: Tensor
    """[S,N,126]: what an entry multiplies: the size of the first of every two dimensions of a
    tensor; the strides of the preferred order of the output; 1 for every dimension of the inputs"""
    suits: Tensor
    """[S,N,30]: strides of the preferred order for every copy that writes it"""
    real: Tensor
    """[S,N,30]: for every copy 1 if the dimension is longer than 1; 0 at operations without a
    preferred order"""
    weights: Tensor
    """[S,N,60]: of the measures of copies: 1, a logarithm and a root of the elements of their
    tensors, and the elements in units"""
    arriving: Tensor
    """[S,2N,N]: maps what nodes ask for their outputs to the orders that arrive at both inputs"""
    is_node: Tensor
    """[S,10,N]: 0, and in the last row 1 at real nodes"""

    @classmethod
    def of(cls, batch: SegmentBatch) -> "LayoutTensors":
        """Computes the properties of the segments of a batch."""
        own = torch.log2(batch.dimensions().clamp(min=1))
        elements = batch.elements()
        roles = _roles(batch, elements)
        sizes = torch.stack([own, *(role @ own for role in roles)], 2)
        counts = torch.cat([elements, *(role @ elements for role in roles)], -1) / ELEMENTS
        suits = _suits(batch, sizes)
        longer = (sizes > 0.5).to(own.dtype) * _any_is(batch, *_PARTICULAR).unsqueeze(-1)
        copies = list(COPIES)
        first_of_pairs = _HALF_BITS * sizes.repeat_interleave(RANK, -1).flatten(2)
        of_inputs = torch.ones_like(suits[:, :, 1:]).flatten(2)
        asks = [first_of_pairs, suits[:, :, 0], of_inputs]
        weights = _weights(counts[:, :, copies].repeat_interleave(MEASURES, 2))
        return cls(
            asks=torch.cat(asks, -1),
            suits=F.pad(suits[:, :, [1, 2, 0]].flatten(2), (2 * RANK, 0)),
            real=longer[:, :, copies].flatten(2),
            weights=weights * batch.mask.unsqueeze(-1),
            arriving=torch.stack(roles, 2).flatten(1, 2) @ _propagated(_same(batch, own)),
            is_node=F.pad(batch.mask.unsqueeze(1), (0, 0, AMOUNTS, 0)),
        )


def _weights(elements: Tensor) -> Tensor:
    """Returns the weights of measures, from the elements of their tensors [S,N,15]."""
    units = torch.tensor([1, LARGEST, LARGEST]).repeat(4 * len(COPIES))
    # The logarithm separates sizes; the root keeps sums over nodes comparable.
    logarithm = torch.log1p(elements * ELEMENTS) / 8
    root = torch.sqrt(elements)
    return torch.cat([torch.ones_like(elements), logarithm, root, elements], -1) * units


def _propagated(same: Tensor) -> Tensor:
    """Maps what nodes ask for their outputs to the orders of these: [S,N,N].

    ``same`` [S,N,N] has weights of operands of the node's own shape, whose order a node without a
    choice keeps. Its rows sum to 1, or to 0 without any.
    """
    asked = torch.eye(same.shape[-1], device=same.device)
    own = (1 - same.sum(-1, keepdim=True)) * asked
    written = asked
    for _ in range(_HOPS):
        written = same @ written + own
    return written


def _any_is(batch: SegmentBatch, *opcodes: int) -> Tensor:
    """Returns 1 at operations with these opcodes: [S,N,1]."""
    found = [(batch.opcode == opcode).to(batch.features.dtype) for opcode in opcodes]
    return torch.stack(found, -1).sum(-1, keepdim=True)


def _same(batch: SegmentBatch, sizes: Tensor) -> Tensor:
    """Returns weights of operands of the node's own shape, except at convolutions and dots."""
    # One number per shape; products of sizes would be equal too often.
    shape = sizes @ (2.6 ** torch.arange(RANK, dtype=sizes.dtype))
    alike = ((shape.unsqueeze(-1) - shape.unsqueeze(-2)).abs() < 1e-3).to(sizes.dtype)
    return mean_weights(batch.edges * alike * (1 - _any_is(batch, _CONVOLUTION, _DOT)))


def _roles(batch: SegmentBatch, elements: Tensor) -> list[Tensor]:
    """Returns the first and the second input of every node among its operands: twice [S,N,N].

    Edges have no operand numbers. The first input [.., M, K] of a dot [.., M, N] is the larger one
    if M exceeds N, and the first input of a convolution is larger than its kernel.
    """
    of_operands = batch.edges * elements.mT
    largest = batch.edges * (of_operands == of_operands.amax(-1, keepdim=True)).to(elements.dtype)
    rest = batch.edges - largest
    rest = rest + largest * (rest.sum(-1, keepdim=True) == 0).to(elements.dtype)
    dimensions = batch.dimensions()
    later = F.pad(dimensions[..., 1:], (0, 1))
    minor = (dimensions * (later == 0).to(elements.dtype)).amax(-1, keepdim=True)
    larger_first = (minor * minor <= elements).to(elements.dtype)
    first = larger_first * largest + (1 - larger_first) * rest
    second = larger_first * rest + (1 - larger_first) * largest
    two = _any_is(batch, _CONVOLUTION, _DOT)
    return [mean_weights(first), mean_weights(second) * two]


def _suits(batch: SegmentBatch, sizes: Tensor) -> Tensor:
    """Returns the strides of the preferred orders: [S,N,3,6].

    They are row-major, except for convolutions: batch, spatial dimensions, features, and for
    kernels spatial dimensions, input features, output features.
    """
    columns = batch.features[..., _CONVOLUTION_COLUMNS]
    major = torch.arange(RANK, dtype=sizes.dtype)
    convolution = _any_is(batch, _CONVOLUTION)

    def at(column: int) -> Tensor:
        return (columns[..., column, None] == major).to(sizes.dtype) * convolution

    # The place of each dimension from major to minor.
    output = major - 10 * at(_OUTPUT_BATCH) + 10 * at(_OUTPUT_FEATURES)
    first = major - 10 * at(_INPUT_BATCH) + 10 * at(_INPUT_FEATURES)
    kernel = major + 10 * at(_KERNEL_INPUT) + 20 * at(_KERNEL_OUTPUT)
    place = torch.stack([output, first, kernel], 2)
    minor = (place.unsqueeze(-2) > place.unsqueeze(-1)).to(sizes.dtype)
    return _HALF_BITS * (minor * sizes.unsqueeze(-2)).sum(-1)
