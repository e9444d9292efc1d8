"""What a layout configuration adds to every node of a segment, and what it moves there."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .graph_layers import look_up, mean_weights, rows_of
from .segment_batch import SegmentBatch

SLOTS = 18
"""Of a node's configuration: six for the output, six for each of two inputs."""
_TENSORS, _RANK = 3, 6
_VALUES = 8
"""-2 not configurable, -1 default, 0 to 5 a dimension."""
_TOGETHER = 3
"""Slots that are looked up together: fewer, longer copies are faster in ONNX Runtime."""
_BYTES_SCALE = 2.0**16
"""Elements that count as one unit of moved data."""
_LARGE = 64.0
"""Units towards which larger amounts saturate, so that no tensor drowns all others."""
_CHANGED, _SIZES = 6, 4
"""Changes of a node's three tensors, order and minor-most dimension; sizes they are seen with."""
_SEEN = _CHANGED * (1 + _SIZES)
CHANGES = _SEEN + 3
"""What a node sees of changes."""
AMOUNTS = 3
"""Kinds of moved data that a node costs."""


class LayoutPart(nn.Module):
    """The configuration's part of the first layer, and the data that it moves at every node.

    Besides the values themselves a node sees, per tensor, whether the order differs from
    row-major and whether the minor-most dimension does, alone and times the size of the tensors
    involved, and how much lies in another order at its producers than it wants to read.
    """

    def __init__(self, hidden: int, hidden_share: float):
        super().__init__()
        self.hide = nn.Dropout(hidden_share)
        self.values = nn.Linear(SLOTS * _VALUES, hidden)
        self.changes = nn.Linear(CHANGES, hidden, bias=False)
        # Constants; small whole numbers, so that products with them are exact.
        self.register_buffer("pack", _pack(), persistent=False)
        self.register_buffer("differences", _differences(), persistent=False)
        self.register_buffer("spread", _spread(), persistent=False)
        self.register_buffer("one_hot", _one_hot(), persistent=False)
        self.register_buffer("others", _others(), persistent=False)

    def forward(self, batch: SegmentBatch, static: Tensor) -> tuple[Tensor, Tensor]:
        """``static`` [S,N,H] and the configuration, joined to [B,N,H], and amounts [B,3,N]."""
        rows, nodes, _ = batch.config.shape
        codes = self.codes(batch)
        one_hot = look_up(self.one_hot, codes).flatten(1)
        products, disagreed = self.changes_of(batch, codes, one_hot)
        words = torch.cat([products, torch.sqrt(disagreed)], -1).flatten(0, 1)
        of_products, of_disagreed = self.changes.weight.split([_SEEN, 3], 1)
        unseen = of_products.new_zeros(of_products.shape[0], _CHANGED)
        weights = torch.cat([of_products, unseen, of_disagreed], 1)
        joined = torch.addmm(self.values(self.hide(one_hot)), words, weights.T)
        joined = joined.view(rows, nodes, -1) + rows_of(static, batch.segment)
        return joined, _amounts(products, disagreed)

    def words(self, batch: SegmentBatch) -> tuple[Tensor, Tensor]:
        """What a configuration changes at every node, [B,N,33], and the amounts [B,3,N]."""
        codes = self.codes(batch)
        products, disagreed = self.changes_of(batch, codes, look_up(self.one_hot, codes).flatten(1))
        changes = torch.cat([products[..., :_SEEN], torch.sqrt(disagreed)], -1)
        return changes, _amounts(products, disagreed)

    def codes(self, batch: SegmentBatch) -> Tensor:
        """i64 [B*N,6]: the values of three slots at a time as one number below 512."""
        slots = batch.config.flatten(0, 1).to(torch.float32)
        return F.linear(slots, self.pack, 2 * self.pack.sum(1)).to(torch.int64)

    def changes_of(
        self, batch: SegmentBatch, codes: Tensor, one_hot: Tensor
    ) -> tuple[Tensor, Tensor]:
        """What a configuration changes at every node: what changed times 1, sizes and elements,
        [B,N,36], and the elements that arrive in another order than is asked for, [B,N,3]."""
        rows, nodes, _ = batch.config.shape
        slots = batch.config.flatten(0, 1).to(torch.float32).clamp(min=-1)
        changed = F.linear(torch.relu(F.linear(slots, self.differences)), self.spread).clamp(max=1)
        products = changed.view(rows, nodes, -1) * rows_of(_factors(batch), batch.segment)
        asked = one_hot[:, _RANK * _VALUES :].reshape(rows, 2 * nodes, -1)
        others = look_up(self.others, codes[:, : _RANK // _TOGETHER]).view(rows, nodes, -1)
        differs = (asked @ others.mT).clamp(max=1)
        return products, _disagreed(batch, differs, products[..., :_TENSORS])


def _factors(batch: SegmentBatch) -> Tensor:
    """[S,N,36]: 1 for each of the six changes; the four sizes for each; the elements moved."""
    elements = batch.elements()
    operands = mean_weights(batch.edges) @ elements
    moved = torch.cat([elements, operands, operands], -1) / _BYTES_SCALE
    ones = torch.ones_like(elements).expand(-1, -1, _CHANGED)
    return torch.cat([ones, *[_sizes(batch, elements)] * _CHANGED, moved, moved], -1)


def _sizes(batch: SegmentBatch, elements: Tensor) -> Tensor:
    """[S,N,4]: how large a node's output and its operands together are, two ways each."""
    both = torch.cat([elements, batch.edges @ elements], -1)
    # The logarithm orders sizes, the root keeps sums of bytes comparable across nodes.
    return torch.cat([torch.log1p(both) / 8, (torch.sqrt(both) / 256).clamp(max=16)], -1)


def _disagreed(batch: SegmentBatch, differs: Tensor, changed: Tensor) -> Tensor:
    """[B,N,3]: elements that arrive in another order than the first and the second input ask
    for, and elements of the own output that its users ask for in another order.

    ``differs`` [B,2N,N] is 1 where the order that the row's input asks for is not the one that
    the column writes; ``changed`` [B,N,3] says which of them differ from row-major, which is
    what everything without a choice has. Where only one of both does, they disagree.
    """
    rows, nodes, _ = changed.shape
    moved = batch.edges * batch.elements().mT / _BYTES_SCALE
    by_input = rows_of(torch.stack([moved, moved], 2).flatten(1, 2), batch.segment) * differs
    writes, asks = changed[..., :1], changed[..., 1:]
    read = rows_of(moved, batch.segment) @ torch.cat([writes, 1 - writes], -1)
    neither = (by_input @ writes).view(rows, nodes, 2)
    inputs = (1 - asks) * read[..., :1] + asks * (read[..., 1:] + neither)
    either = asks.sum(-1, keepdim=True)
    users = rows_of(moved.mT, batch.segment) @ torch.cat([either, 2 - either], -1)
    both = by_input.mT @ asks.reshape(rows, 2 * nodes, 1)
    users = (1 - writes) * users[..., :1] + writes * (users[..., 1:] + both)
    return torch.cat([inputs, users / 2], -1)


def _amounts(products: Tensor, disagreed: Tensor) -> Tensor:
    """[B,3,N]: elements of tensors with a changed order, with a changed minor dimension, and
    that arrive in another order than is asked for."""
    moved = products[..., _SEEN:].unflatten(-1, (2, _TENSORS)).sum(-1)
    amounts = torch.cat([moved, disagreed.sum(-1, keepdim=True)], -1).mT
    return amounts / (1 + amounts / _LARGE)


def _pack() -> Tensor:
    """[6,18]: three slots to one number, base 8."""
    base = _VALUES ** torch.arange(_TOGETHER - 1, -1, -1)
    return torch.block_diag(*[base.float()] * (SLOTS // _TOGETHER))


def _one_hot() -> Tensor:
    """[512,24]: three values by their number, each as one of eight."""
    digits = torch.cartesian_prod(*[torch.arange(_VALUES)] * _TOGETHER)
    return F.one_hot(digits, _VALUES).flatten(1).float()


def _others() -> Tensor:
    """[512,24]: the dimensions that three values are not."""
    dimensions = (torch.arange(_VALUES) >= 2).float().repeat(_TOGETHER)
    return (1 - _one_hot()) * dimensions


def _differences() -> Tensor:
    """[30,18]: by how much each place of a tensor exceeds the one before, [3*5] of these, and the
    first, [3*5]. The order is row-major where none exceeds the one before, and the minor-most
    dimension is where none exceeds the first; places without a dimension hold -1."""
    places = torch.eye(_RANK)
    before, first = places[1:] - places[:-1], places[1:] - places[0]
    return torch.cat([torch.block_diag(*[part] * _TENSORS) for part in (before, first)])


def _spread() -> Tensor:
    """[36,30]: which differences make each of the six changes, in the order of ``_factors``."""
    made = torch.block_diag(*[torch.ones(1, _RANK - 1)] * _CHANGED)
    return torch.cat([made, made.repeat_interleave(_SIZES, 0), made])
