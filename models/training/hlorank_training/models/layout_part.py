"""What a layout configuration adds to every node of a segment, and the data that it moves there.

One order of dimensions suits an operation: row-major, but of a convolution with its features
minor-most. Where a configuration asks for another one XLA copies: what an operation writes into
the order asked of it, what arrives at an input into the order asked there, and that into the one
that suits. Between such operations an order lives on in everything of the same shape.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hlorank_training.models.graph_layers import look_up, rows_of
from hlorank_training.models.layout_tensors import COPIES, ELEMENTS, MEASURES, RANK, LayoutTensors
from hlorank_training.models.segment_batch import SegmentBatch

SLOTS = 18
"""Of a node's configuration: six for the output, six for each of two inputs."""
_TENSORS = 3
_VALUES = 8
"""-2 not configurable, -1 default, 0 to 5 a dimension."""
_TOGETHER = 3
"""Slots that are looked up together: fewer, longer copies are faster in ONNX Runtime."""
_HOPS = 2
"""Over how many nodes without a choice an order lives on: segments hold chains no longer."""
_STRIDE_BITS = 8.0
"""A stride that counts as one more copy."""
_LARGE = 64.0
"""Units towards which larger amounts saturate, so that no tensor drowns all others."""
_KINDS = (0, 1, 1, 2, 2)
"""Of a node's copies: of its output, of what arrives, into what suits."""
WORDS = len(COPIES) * MEASURES * 3
"""What a node sees of copies: their measures alone and times the tensor's size, two ways."""
AMOUNTS = 3 * MEASURES
"""Copied data of a node, by kind of copy and measure."""


class LayoutPart(nn.Module):
    """The configuration's part of the first layer: its values themselves, and its copies.

    What is said of a node lies in one long row: ONNX Runtime is slow along short ones.
    """

    def __init__(self, hidden: int, hidden_share: float):
        super().__init__()
        self.hide = nn.Dropout(hidden_share)
        self.values = nn.Linear(SLOTS * _VALUES, hidden)
        self.copies = nn.Linear(WORDS, hidden, bias=False)
        # Constants; sums of a few numbers, by products with small whole ones.
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
        """``static`` [S,N,H] and the configuration, joined to [B,N,H], and amounts [B,9,N]."""
        one_hot = self._one_hot_values(batch)
        words, amounts = self._copies(batch, one_hot)
        joined = self.values(self.hide(one_hot)) + self.copies(words.flatten(0, 1))
        return joined.view(*words.shape[:2], -1) + rows_of(static, batch.segment), amounts

    def words(self, batch: SegmentBatch) -> tuple[Tensor, Tensor]:
        """What a node sees of copies, [B,N,45], and the amounts [B,9,N]."""
        return self._copies(batch, self._one_hot_values(batch))

    def _one_hot_values(self, batch: SegmentBatch) -> Tensor:
        """[B*N,144]: every slot as one of eight values."""
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
        # Of the output what is wanted stands for what is read: one row for all is faster.
        read = torch.cat([wanted, arrives, taken], -1)
        write = F.pad(taken, (RANK, 2 * RANK)) + rows_of(tensors.suits_copies, batch.segment)
        real = rows_of(tensors.real, batch.segment)
        # The minor-most dimension of an order is the long one whose stride is 0 bits.
        parts = [
            (read - write).abs() * real,
            torch.relu(real - 2 * write) * read,
            torch.relu(real - 2 * read) * write,
        ]
        measures = torch.minimum(torch.cat(parts, -1) @ self.measures, self.most)
        return self._weighed(measures, rows_of(tensors.elements, batch.segment))

    def _asked(self, batch: SegmentBatch, one_hot: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor]:
        """Strides [B,N,18] that a configuration asks for, 0 where it does not, and whether it
        does, [B,N,18]."""
        values = one_hot.view(*batch.config.shape[:2], -1)
        strides = (values * sizes) @ self.more_minor
        return ((strides @ self.at_place) * values) @ self.of_dimension, values @ self.is_chosen

    def _weighed(self, measures: Tensor, elements: Tensor) -> tuple[Tensor, Tensor]:
        """What a node sees of its copies, [B,N,45], and the amounts [B,9,N], from their measures
        and the elements of their tensors, both [B,N,15]."""
        # The logarithm orders sizes, the root keeps sums over nodes comparable.
        logarithm, root = torch.log1p(elements * ELEMENTS) / 8, torch.sqrt(elements)
        words = torch.cat([measures, measures * logarithm, measures * root], -1)
        amounts = (measures * elements @ self.kinds).mT
        return words, amounts / (1 + amounts / _LARGE)


def _arriving(batch: SegmentBatch, tensors: LayoutTensors, wanted: Tensor) -> Tensor:
    """Strides [B,N,12] of what arrives at every node's inputs; ``wanted`` [B,N,6] are those of its
    output, which live on in what has no choice."""
    same = rows_of(tensors.same, batch.segment)
    own = wanted * (1 - same.sum(-1, keepdim=True))
    written = wanted
    for _ in range(_HOPS):
        written = same @ written + own
    arriving = rows_of(tensors.roles, batch.segment) @ written
    return arriving.view(*wanted.shape[:2], -1)


def _pack() -> Tensor:
    """[6,18]: three slots to one number, base 8."""
    base = _VALUES ** torch.arange(_TOGETHER - 1, -1, -1)
    return torch.block_diag(*[base.float()] * (SLOTS // _TOGETHER))


def _one_hot() -> Tensor:
    """[512,24]: three values by their number, each as one of eight."""
    digits = torch.cartesian_prod(*[torch.arange(_VALUES)] * _TOGETHER)
    return F.one_hot(digits, _VALUES).flatten(1).float()


def _of_tensors(one: Tensor) -> Tensor:
    """The same for each of a node's three tensors."""
    return torch.block_diag(*[one] * _TENSORS)


def _dimensions() -> Tensor:
    """[8,6]: which dimension a value of a slot is."""
    return F.pad(torch.eye(RANK), (0, 0, _VALUES - RANK, 0))


def _more_minor() -> Tensor:
    """[144,18]: sums over what stands at more minor places, by place."""
    before = torch.ones(RANK, RANK).triu(1)
    return _of_tensors(before.repeat_interleave(_VALUES, 0))


def _at_place() -> Tensor:
    """[18,144]: what stands at a place, at every value there."""
    return torch.eye(SLOTS).repeat_interleave(_VALUES, 1)


def _of_dimension() -> Tensor:
    """[144,18]: sums over places, by dimension."""
    return _of_tensors(_dimensions().repeat(RANK, 1))


def _is_chosen() -> Tensor:
    """[144,18]: at every dimension of a tensor 1 where its first place holds one."""
    first = _dimensions().sum(1, keepdim=True).expand(-1, RANK)
    return _of_tensors(F.pad(first, (0, 0, 0, (RANK - 1) * _VALUES)))


def _sums_of_measures() -> Tensor:
    """[90,15]: sums over dimensions, from measures of copies to copies and their measures."""
    scale = torch.tensor([1, 1 / _STRIDE_BITS, 1 / _STRIDE_BITS])
    sums = torch.zeros(MEASURES, len(COPIES), RANK, len(COPIES), MEASURES)
    for measure in range(MEASURES):
        for copy in range(len(COPIES)):
            sums[measure, copy, :, copy, measure] = scale[measure]
    return sums.flatten(0, 2).flatten(1)


def _most() -> Tensor:
    """[15]: that there is a copy is 1 however much the orders differ."""
    return torch.tensor([1.0, torch.inf, torch.inf]).repeat(len(COPIES))


def _sums_of_kinds() -> Tensor:
    """[15,9]: sums over the inputs, by kind of copy and measure."""
    kinds = F.one_hot(torch.tensor(_KINDS)).float()
    return torch.kron(kinds, torch.eye(MEASURES))
