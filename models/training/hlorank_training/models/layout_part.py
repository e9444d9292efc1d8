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
from hlorank_training.models.layout_tensors import COPIES, ELEMENTS, MEASURES, RANK, LayoutTensors
from hlorank_training.models.segment_batch import SegmentBatch

SLOTS = 18
"""Slots of a node's configuration: six for the output, six for each of two inputs."""
_TENSORS = 3
_VALUES = 8
"""-2 for not configurable, -1 for the default, and the dimensions 0 to 5."""
_TOGETHER = 3
"""Slots per lookup: few long copies are faster than many short ones in ONNX Runtime."""
_HOPS = 2
"""Maximum nodes without a choice that propagate an order; segments have no longer chains."""
_STRIDE_BITS = 8.0
"""Bits of a stride that count as one more copy."""
_LARGE = 64.0
"""Units at which amounts saturate, so that no tensor dominates all others."""
_KINDS = (0, 1, 1, 2, 2)
"""Kind of each copy of a node: of its output, of arriving data, to the preferred order."""
WORDS = len(COPIES) * MEASURES * 3
"""Features of a node's copies: their measures, alone and multiplied by two functions of size."""
AMOUNTS = 3 * MEASURES
"""Amounts of copied data of a node, by kind of copy and measure."""


class LayoutPart(nn.Module):
    """The configuration's part of the first layer: its values and its copies.

    All features of a node are in one long row, since ONNX Runtime is slow along short rows.
    """

    def __init__(self, hidden: int, hidden_share: float):
        super().__init__()
        self.hide = nn.Dropout(hidden_share)
        self.values = nn.Linear(SLOTS * _VALUES, hidden)
        self.copies = nn.Linear(WORDS, hidden, bias=False)
        # Constant matrices, which compute sums of a few numbers as products.
        self.register_buffer("pack", _pack(), persistent=False)
        self.register_buffer("one_hot", _one_hot(), persistent=False)
        self.register_buffer("more_minor", _more_minor(), persistent=False)
        self.register_buffer("at_place", _at_place(), persistent=False)
        self.register_buffer("of_dimension", _of_dimension(), persistent=False)
        self.register_buffer("is_chosen", _is_chosen(), persistent=False)
        self.register_buffer("measures", _sums_of_measures(), persistent=False)
        self.register_buffer("most", _most(), persistent=False)
        self.register_buffer("kinds", _sums_of_kinds(), persistent=False)

    def forward(self, batch: SegmentBatch, static: Tensor) -> tuple[Tensor, Tensor]:
        """Joins ``static`` [S,N,H] and the configuration to [B,N,H]; adds amounts [B,9,N]."""
        one_hot = self._one_hot_values(batch)
        words, amounts = self._copies(batch, one_hot)
        joined = self.values(self.hide(one_hot)) + self.copies(words.flatten(0, 1))
        return joined.view(*words.shape[:2], -1) + rows_of(static, batch.segment), amounts

    def words(self, batch: SegmentBatch) -> tuple[Tensor, Tensor]:
        """Returns the features of copies [B,N,45], and the amounts [B,9,N]."""
        return self._copies(batch, self._one_hot_values(batch))

    def _one_hot_values(self, batch: SegmentBatch) -> Tensor:
        """Returns every slot's value one-hot: [B*N,144]."""
        slots = batch.config.flatten(0, 1).to(torch.float32)
        codes = F.linear(slots, self.pack, 2 * self.pack.sum(1)).to(torch.int64)
        return look_up(self.one_hot, codes).flatten(1)

    def _copies(self, batch: SegmentBatch, one_hot: Tensor) -> tuple[Tensor, Tensor]:
        tensors = LayoutTensors.of(batch)
        suits = rows_of(tensors.suits, batch.segment)
        asked, chosen = self._asked(batch, one_hot, rows_of(tensors.sizes, batch.segment))
        wanted = asked[..., :RANK] + suits[..., :RANK] * (1 - chosen[..., :RANK])
        arrives = _arriving(batch, tensors, wanted)
        taken = asked[..., RANK:] + arrives * (1 - chosen[..., RANK:])
        # For outputs, the wanted order stands for the order read: one row for all is faster.
        read = torch.cat([wanted, arrives, taken], -1)
        write = F.pad(taken, (RANK, 2 * RANK)) + rows_of(tensors.suits_copies, batch.segment)
        real = rows_of(tensors.real, batch.segment)
        # The minor-most dimension of an order is the one above size 1 with a stride of 0 bits.
        parts = [
            (read - write).abs() * real,
            torch.relu(real - 2 * write) * read,
            torch.relu(real - 2 * read) * write,
        ]
        measures = torch.minimum(torch.cat(parts, -1) @ self.measures, self.most)
        return self._weighed(measures, rows_of(tensors.elements, batch.segment))

    def _asked(self, batch: SegmentBatch, one_hot: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the strides [B,N,18] that a configuration sets, 0 for unset tensors, and whether
        they are set [B,N,18]."""
        values = one_hot.view(*batch.config.shape[:2], -1)
        strides = (values * sizes) @ self.more_minor
        return ((strides @ self.at_place) * values) @ self.of_dimension, values @ self.is_chosen

    def _weighed(self, measures: Tensor, elements: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the features of copies [B,N,45] and the amounts [B,9,N], from their measures and
        the elements of their tensors, both [B,N,15]."""
        # The logarithm separates sizes; the root keeps sums over nodes comparable.
        logarithm, root = torch.log1p(elements * ELEMENTS) / 8, torch.sqrt(elements)
        words = torch.cat([measures, measures * logarithm, measures * root], -1)
        amounts = (measures * elements @ self.kinds).mT
        return words, amounts / (1 + amounts / _LARGE)


def _arriving(batch: SegmentBatch, tensors: LayoutTensors, wanted: Tensor) -> Tensor:
    """Returns the strides [B,N,12] of the orders that arrive at every node's inputs.

    ``wanted`` [B,N,6] are the strides of outputs, which nodes without a choice propagate.
    """
    same = rows_of(tensors.same, batch.segment)
    own = wanted * (1 - same.sum(-1, keepdim=True))
    written = wanted
    for _ in range(_HOPS):
        written = same @ written + own
    arriving = rows_of(tensors.roles, batch.segment) @ written
    return arriving.view(*wanted.shape[:2], -1)


def _pack() -> Tensor:
    """Maps three slots to one number to base 8: [6,18]."""
    base = _VALUES ** torch.arange(_TOGETHER - 1, -1, -1)
    return torch.block_diag(*[base.float()] * (SLOTS // _TOGETHER))


def _one_hot() -> Tensor:
    """Maps such a number to its three values, one-hot: [512,24]."""
    digits = torch.cartesian_prod(*[torch.arange(_VALUES)] * _TOGETHER)
    return F.one_hot(digits, _VALUES).flatten(1).float()


def _of_tensors(one: Tensor) -> Tensor:
    """Repeats a matrix for each of a node's three tensors."""
    return torch.block_diag(*[one] * _TENSORS)


def _dimensions() -> Tensor:
    """Maps a slot's value to its dimension, one-hot: [8,6]."""
    return F.pad(torch.eye(RANK), (0, 0, _VALUES - RANK, 0))


def _more_minor() -> Tensor:
    """Sums over the slots of more minor places, by place: [144,18]."""
    before = torch.ones(RANK, RANK).triu(1)
    return _of_tensors(before.repeat_interleave(_VALUES, 0))


def _at_place() -> Tensor:
    """Repeats a place's number for each of its values: [18,144]."""
    return torch.eye(SLOTS).repeat_interleave(_VALUES, 1)


def _of_dimension() -> Tensor:
    """Sums over places, by dimension: [144,18]."""
    return _of_tensors(_dimensions().repeat(RANK, 1))


def _is_chosen() -> Tensor:
    """Tells for every dimension of a tensor whether its first place is set: [144,18]."""
    first = _dimensions().sum(1, keepdim=True).expand(-1, RANK)
    return _of_tensors(F.pad(first, (0, 0, 0, (RANK - 1) * _VALUES)))


def _sums_of_measures() -> Tensor:
    """Sums the measures of copies over dimensions: [90,15]."""
    scale = torch.tensor([1, 1 / _STRIDE_BITS, 1 / _STRIDE_BITS])
    sums = torch.zeros(MEASURES, len(COPIES), RANK, len(COPIES), MEASURES)
    for measure in range(MEASURES):
        for copy in range(len(COPIES)):
            sums[measure, copy, :, copy, measure] = scale[measure]
    return sums.flatten(0, 2).flatten(1)


def _most() -> Tensor:
    """Upper bounds of measures: the existence of a copy counts at most 1: [15]."""
    return torch.tensor([1.0, torch.inf, torch.inf]).repeat(len(COPIES))


def _sums_of_kinds() -> Tensor:
    """Sums over the inputs, by kind of copy and measure: [15,9]."""
    kinds = F.one_hot(torch.tensor(_KINDS)).float()
    return torch.kron(kinds, torch.eye(MEASURES))
