"""The layout configuration's part of a model: its values, and the copies that it causes.

Every operation has a preferred order of dimensions: row-major, or with the features minor-most for
a convolution. If a configuration sets another order, XLA inserts copies: from the preferred order
of an operation to the order set for its output, from an input's arriving order to the order set
for it, and from there to the preferred order. Operations without a choice keep the order of
operands of the same shape.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hlorank_training.models.graph_layers import look_up, rows_of
from hlorank_training.models.layout_tensors import COPIES, MEASURES, RANK, LayoutTensors
from hlorank_training.models.segment_batch import SegmentBatch

SLOTS = 18
"""Slots of a node's configuration: six for the output, six for each of two inputs."""
_TENSORS = 3
_VALUES = 8
"""-2 for not configurable, -1 for the default, and the dimensions 0 to 5."""
_PAIRS = RANK * RANK
_STRIDE_BITS = 8.0
"""Bits of a stride that count as one more copy."""
_LARGE = 64.0
"""Units at which amounts saturate, so that no tensor dominates all others."""
_KINDS = (0, 1, 1, 2, 2)
"""Kind of each copy of a node: of its output, of arriving data, to the preferred order."""
_WEIGHTS = 4
"""Weights of a measure: 1, two functions of the size, and the size."""
WORDS = len(COPIES) * MEASURES * 3
"""Features of a node's copies: their measures, alone and multiplied by two functions of size."""
AMOUNTS = 3 * MEASURES
"""Amounts of copied data of a node, by kind of copy and measure."""


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
        # Constant matrices, which compute sums of a few numbers as products.
        self.register_buffer("one_hot", torch.eye(_VALUES), persistent=False)
        self.register_buffer("more_minor", torch.ones(RANK, RANK).triu(1), persistent=False)
        self.register_buffer("of_pairs", _of_pairs(), persistent=False)
        self.register_buffer("is_chosen", _is_chosen(), persistent=False)
        self.register_buffer("measures", _sums_of_measures(), persistent=False)
        self.register_buffer("most", _most(), persistent=False)
        self.register_buffer("repeated", _repeated(), persistent=False)
        self.register_buffer("kinds", _sums_of_kinds(), persistent=False)
        self.register_buffer("one", torch.eye(AMOUNTS + 1)[:, -1:], persistent=False)

    def of_segments(self, batch: SegmentBatch) -> tuple[LayoutTensors, Tensor]:
        """Returns what depends on the segments alone, and what is added to their nodes [H]."""
        return LayoutTensors.of(batch), self.values.bias

    def forward(
        self, tensors: LayoutTensors, nodes: Tensor, entries: Tensor, entry: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Joins ``nodes`` [B,N,H] and the configuration to [B*N,H]; adds amounts and 1, [B,10,N].

        ``entries`` i64 [E,18] are the entries of the rows, and ``entry`` i64 [B,N] is the number of
        that of each node.
        """
        one_hot = self._one_hot_values(entries)
        measures = self._measures(tensors, one_hot, entry)
        values = look_up(F.linear(self.hide(one_hot), self.values.weight), entry)
        given = (values + nodes).flatten(0, 1)
        # The last measures, which are amounts, are no features.
        weight = F.pad(self.copies.weight, (0, len(COPIES) * MEASURES))
        return torch.addmm(given, measures, weight.T), self._amounts(measures, entry)

    def words(self, batch: SegmentBatch) -> tuple[Tensor, Tensor]:
        """Returns the features of copies [B,N,45], and the amounts [B,9,N]."""
        tensors, _ = self.of_segments(batch)
        every = LayoutTensors(*(rows_of(tensor, batch.segment) for tensor in tensors))
        entries, entry = separate_entries(batch.config)
        measures = self._measures(every, self._one_hot_values(entries), entry)
        words = measures[:, :WORDS].view(*entry.shape, -1)
        return words, self._amounts(measures, entry)[:, :AMOUNTS]

    def _one_hot_values(self, entries: Tensor) -> Tensor:
        """Returns every slot's value one-hot: [E,144]."""
        return look_up(self.one_hot, entries + 2).flatten(1)

    def _measures(self, tensors: LayoutTensors, one_hot: Tensor, entry: Tensor) -> Tensor:
        """Returns the weighed measures of copies: [B*N,60]."""
        asked, unset = self._asked(tensors, one_hot, entry)
        wanted, taken = asked.split([RANK, 2 * RANK], -1)
        arrives = (tensors.arriving @ wanted).view(-1, *taken.shape[1:])
        taken = taken + arrives * unset
        # For outputs, the wanted order stands for the order read: one row for all is faster.
        read = torch.cat([wanted, arrives, taken], -1)
        write = F.pad(taken, (RANK, 2 * RANK)) + tensors.suits_copies
        # The minor-most dimension of an order is the one above size 1 with a stride of 0 bits.
        exists = (read - write).abs() * tensors.real
        reading = torch.relu(tensors.real - 2 * write) * read
        writing = torch.relu(tensors.real - 2 * read) * write
        measures = exists.flatten(0, 1) @ self.measures[0]
        measures = torch.addmm(measures, reading.flatten(0, 1), self.measures[1])
        measures = torch.addmm(measures, writing.flatten(0, 1), self.measures[2])
        measures = torch.minimum(measures, self.most) @ self.repeated
        return (_of_nodes(measures, entry) * tensors.weights).flatten(0, 1)

    def _asked(
        self, tensors: LayoutTensors, one_hot: Tensor, entry: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Returns the strides [B,N,18] that nodes ask for, the preferred ones of outputs that are
        not set, and which of those of the inputs are not set [B,N,12]."""
        places = one_hot.view(-1, _TENSORS, RANK, _VALUES)[..., _VALUES - RANK :]
        # Of two dimensions of a tensor, whether the first is more minor: [E,108].
        first_is_minor = ((self.more_minor.T @ places).mT @ places).flatten(1)
        unset = torch.addmm(torch.ones_like(one_hot[:, :1]), one_hot, self.is_chosen, alpha=-1)
        of_output, of_inputs = unset.split([RANK, 2 * RANK], -1)
        strides = (look_up(first_is_minor, entry) * tensors.sizes) @ self.of_pairs
        preferred = F.pad(look_up(of_output, entry) * tensors.suits, (0, 2 * RANK))
        return strides + preferred, look_up(of_inputs, entry)

    def _amounts(self, measures: Tensor, entry: Tensor) -> Tensor:
        """Returns the amounts of weighed measures, and 1: [B,10,N]."""
        amounts = _of_nodes(measures @ self.kinds, entry).mT
        return amounts / (1 + amounts / _LARGE) + self.one


def _of_nodes(flat: Tensor, entry: Tensor) -> Tensor:
    """Maps what nodes have, [B*N,F], to [B,N,F]."""
    return flat.view(-1, entry.shape[1], flat.shape[1])


def separate_entries(config: Tensor) -> tuple[Tensor, Tensor]:
    """Maps config [B,N,18] to one entry per node, [B*N,18], and their numbers [B,N]."""
    rows, nodes, _ = config.shape
    entry = torch.arange(rows * nodes, device=config.device).view(rows, nodes)
    return config.flatten(0, 1), entry


def _of_pairs() -> Tensor:
    """Sums over the first of two dimensions, by tensor and second dimension: [108,18]."""
    return _of_tensors(torch.eye(RANK).repeat(RANK, 1))


def _of_tensors(one: Tensor) -> Tensor:
    """Repeats a matrix for each of a node's three tensors."""
    return torch.block_diag(*[one] * _TENSORS)


def _dimensions() -> Tensor:
    """Maps a slot's value to its dimension, one-hot: [8,6]."""
    return F.pad(torch.eye(RANK), (0, 0, _VALUES - RANK, 0))


def _is_chosen() -> Tensor:
    """Tells for every dimension of a tensor whether its first place is set: [144,18]."""
    first = _dimensions().sum(1, keepdim=True).expand(-1, RANK)
    return _of_tensors(F.pad(first, (0, 0, 0, (RANK - 1) * _VALUES)))


def _sums_of_measures() -> Tensor:
    """Sums each measure of copies over dimensions: [3,30,15]."""
    scale = torch.tensor([1, 1 / _STRIDE_BITS, 1 / _STRIDE_BITS])
    sums = torch.zeros(MEASURES, len(COPIES), RANK, len(COPIES), MEASURES)
    for measure in range(MEASURES):
        for copy in range(len(COPIES)):
            sums[measure, copy, :, copy, measure] = scale[measure]
    return sums.flatten(1, 2).flatten(2)


def _most() -> Tensor:
    """Upper bounds of measures: the existence of a copy counts at most 1: [15]."""
    return torch.tensor([1.0, torch.inf, torch.inf]).repeat(len(COPIES))


def _repeated() -> Tensor:
    """Repeats measures for each of their weights: [15,60]."""
    return torch.eye(len(COPIES) * MEASURES).repeat(1, _WEIGHTS)


def _sums_of_kinds() -> Tensor:
    """Sums the measures that are weighed by sizes over the inputs, by kind of copy: [60,10].

    The last column is 0.
    """
    kinds = F.one_hot(torch.tensor(_KINDS)).float()
    sums = torch.kron(kinds, torch.eye(MEASURES))
    return F.pad(sums, (0, 1, WORDS, 0))
