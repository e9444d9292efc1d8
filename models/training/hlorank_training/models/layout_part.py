"""The layout configuration's part of a model: its values, and the copies that it causes.

Every operation has a preferred order of dimensions: row-major, or with the features minor-most for
a convolution. If a configuration sets another order, XLA inserts copies: from the preferred order
of an operation to the order set for its output, from an input's arriving order to the order set
for it, and from there to the preferred order. Operations without a choice keep the order of
operands of the same shape.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hlorank_training.models.graph_layers import look_up, mean_weights, rows_of
from hlorank_training.models.segment_model import SegmentBatch

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


SLOTS = 18
"""Slots of a node's configuration: six for the output, six for each of two inputs."""
_TENSORS = 3
_VALUES = 8
"""-2 for not configurable, -1 for the default, and the dimensions 0 to 5."""
_PAIRS = RANK * RANK
_STRIDE_HALF_BITS = 16.0
"""Half bits of a stride that count as one more copy."""
_FAR = 100.0
"""More than any difference of places."""
_SATURATION = 64.0
"""Units at which amounts saturate, so that no tensor dominates all others."""
_KINDS = (1, 1, 2, 2, 0)
"""Kind of each copy of a node: of its output, of arriving data, to the preferred order."""
_WEIGHTS = 4
"""Weights of a measure: 1, two functions of the size, and the size."""
WORDS = len(COPIES) * MEASURES * 3
"""Features of a node's copies: their measures, alone and multiplied by two functions of size."""


class LayoutPart(nn.Module):
    """The configuration's part of the first layer: its values and its copies.

    What an entry, the configuration of one node, means without its node is computed once for all
    nodes that have it. All features of a node are in one long row, since ONNX Runtime is slow along
    short rows.
    """

    Tensors = LayoutTensors

    def __init__(self, hidden: int, hidden_share: float):
        super().__init__()
        self.hide = nn.Dropout(hidden_share)
        self.values = nn.Linear(SLOTS * _VALUES, hidden)
        self.copies = nn.Linear(WORDS, hidden, bias=False)
        self.register_buffer("value", torch.arange(-2, _VALUES - 2), persistent=False)
        # Constant matrices, which compute sums of a few numbers as products.
        self.register_buffer("asked", _asked(), persistent=False)
        self.register_buffer("unasked", _unasked(), persistent=False)
        self.register_buffer("strides", _strides(), persistent=False)
        self.register_buffer("measures", _sums_of_measures(), persistent=False)
        self.register_buffer("kinds", _sums_of_kinds(), persistent=False)

    def of_segments(self, batch: SegmentBatch) -> tuple[LayoutTensors, Tensor]:
        """Returns what depends on the segments alone, and what is added to their nodes [H]."""
        return LayoutTensors.of(batch), self.values.bias

    def forward(
        self, tensors: LayoutTensors, nodes: Tensor, entries: Tensor, entry: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Joins ``nodes`` [B,N,H] and the configuration to [B*N,H]; adds amounts and 1, [B,10,N],
        which are 0 at padding.

        ``entries`` i64 [E,18] are the entries of the rows, and ``entry`` i64 [B,N] is the number of
        that of each node.
        """
        one_hot = self._one_hot_values(entries)
        measures = self._measures(tensors, one_hot, entry)
        values = look_up(F.linear(self.hide(one_hot), self.values.weight), entry)
        given = (values + nodes).flatten(0, 1)
        # The last measures, which are amounts, are no features.
        weight = F.pad(self.copies.weight, (0, len(COPIES) * MEASURES))
        return torch.addmm(given, measures, weight.T), self._amounts(tensors, measures, entry)

    def words(self, batch: SegmentBatch) -> tuple[Tensor, Tensor]:
        """Returns the features of copies [B,N,45], and the amounts [B,9,N]."""
        tensors, _ = self.of_segments(batch)
        every = LayoutTensors(*(rows_of(tensor, batch.segment) for tensor in tensors))
        entries, entry = separate_entries(batch.config)
        measures = self._measures(every, self._one_hot_values(entries), entry)
        words = measures[:, :WORDS].view(*entry.shape, -1)
        return words, self._amounts(every, measures, entry)[:, :AMOUNTS]

    def _one_hot_values(self, entries: Tensor) -> Tensor:
        """Returns every slot's value one-hot: [E,144]."""
        return (entries.unsqueeze(-1) == self.value).flatten(1).to(self.asked.dtype)

    def _measures(self, tensors: LayoutTensors, one_hot: Tensor, entry: Tensor) -> Tensor:
        """Returns the weighed measures of copies: [B*N,60]."""
        wanted, taken, unset = self._strides(tensors, one_hot, entry).split(
            [RANK, 2 * RANK, 2 * RANK], -1
        )
        arrives = (tensors.arriving @ wanted).view(-1, *taken.shape[1:])
        taken = taken + arrives * unset
        # For outputs, the wanted order stands for the order read: one row for all is faster.
        read = torch.cat([arrives, taken, wanted], -1)
        write = F.pad(taken, (0, 3 * RANK)) + tensors.suits
        # Only the minor-most dimension of an order has a stride below 1 half bit.
        exists = (read - write).abs() * tensors.real
        reading = torch.relu(tensors.real - write) * read
        writing = torch.relu(tensors.real - read) * write
        dimensions = torch.cat([exists, reading, writing], -1).flatten(0, 1)
        measures = (dimensions @ self.measures).clamp(max=1)
        measures = torch.cat([measures] * _WEIGHTS, -1)
        return (_of_nodes(measures, entry) * tensors.weights).flatten(0, 1)

    def _strides(self, tensors: LayoutTensors, one_hot: Tensor, entry: Tensor) -> Tensor:
        """Returns the strides that nodes ask for, with the preferred ones of outputs that are not
        set, and which of those of the inputs are not set: [B,N,30]."""
        asked = torch.addmm(self.unasked, one_hot, self.asked).clamp(0, 1)
        return (look_up(asked, entry) * tensors.asks) @ self.strides

    def _amounts(self, tensors: LayoutTensors, measures: Tensor, entry: Tensor) -> Tensor:
        """Returns the amounts of weighed measures, and 1: [B,10,N]."""
        amounts = _of_nodes(measures @ self.kinds, entry).mT
        return amounts / (1 + amounts / _SATURATION) + tensors.is_node


def _of_nodes(flat: Tensor, entry: Tensor) -> Tensor:
    """Maps what nodes have, [B*N,F], to [B,N,F]."""
    return flat.view(-1, entry.shape[1], flat.shape[1])


def separate_entries(config: Tensor) -> tuple[Tensor, Tensor]:
    """Maps config [B,N,18] to one entry per node, [B*N,18], and their numbers [B,N]."""
    rows, nodes, _ = config.shape
    entry = torch.arange(rows * nodes, device=config.device).view(rows, nodes)
    return config.flatten(0, 1), entry


def _dimensions() -> Tensor:
    """Maps a slot's value to its dimension, one-hot: [8,6]."""
    return F.pad(torch.eye(RANK), (0, 0, _VALUES - RANK, 0))


def _asked() -> Tensor:
    """Maps an entry's values to what it asks for, if clipped to 0 and 1: [144,126].

    These are, for every two dimensions of a tensor, whether the first is more minor, which is the
    difference of their places, and for every dimension whether the order of its tensor is set.
    """
    dimensions = _dimensions()
    placed = dimensions.repeat(RANK, 1)
    place = torch.arange(RANK).repeat_interleave(_VALUES).unsqueeze(-1) * placed
    # A dimension without a place is neither more minor nor less.
    first = (place - _FAR * placed).repeat_interleave(RANK, 1)
    second = (place + _FAR * placed).repeat(1, RANK)
    is_set = F.pad(dimensions.sum(1, keepdim=True), (0, 0, 0, (RANK - 1) * _VALUES))
    orders = torch.block_diag(*[second - first] * _TENSORS)
    unset = torch.block_diag(*[-is_set.expand(-1, RANK)] * _TENSORS)
    return torch.cat([orders, unset], 1)


def _unasked() -> Tensor:
    """What an entry without any place asks for, before it is clipped: [126]."""
    return torch.cat([torch.full((_TENSORS * _PAIRS,), -2 * _FAR), torch.ones(SLOTS)])


def _strides() -> Tensor:
    """Sums what nodes ask for over the first of two dimensions, adds the preferred strides of an
    output that is not set, and keeps which inputs are not set: [126,30]."""
    of_pairs = torch.block_diag(*[torch.eye(RANK).repeat(RANK, 1)] * _TENSORS)
    preferred = torch.eye(RANK, SLOTS)
    asked = torch.cat([of_pairs, preferred])
    return torch.block_diag(asked, torch.eye(2 * RANK))


def _sums_of_measures() -> Tensor:
    """Sums each measure of copies over dimensions: [90,15]."""
    stride = 1 / _STRIDE_HALF_BITS / LARGEST
    scale = torch.diag(torch.tensor([0.5, stride, stride]))
    of_copies = torch.eye(len(COPIES)).repeat_interleave(RANK, 0)
    sums = scale[:, None, None, :] * of_copies[None, :, :, None]
    return sums.flatten(2).flatten(0, 1)


def _sums_of_kinds() -> Tensor:
    """Sums the measures that are weighed by sizes over the inputs, by kind of copy: [60,10].

    The last column is 0.
    """
    kinds = F.one_hot(torch.tensor(_KINDS)).float()
    sums = torch.kron(kinds, torch.eye(MEASURES))
    return F.pad(sums, (0, 1, WORDS, 0))
