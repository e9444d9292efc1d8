"""What a layout configuration adds to every node of a segment, and what it moves there."""

import torch
from torch import Tensor, nn

from .graph_layers import mean_weights, rows_of
from .segment_batch import SegmentBatch

SLOTS = 18
"""Of a node's configuration: six for the output, six for each of two inputs."""
_VALUES = 8
"""-2 not configurable, -1 default, 0 to 5 a dimension."""
_BYTES_SCALE = 2.0**16
"""Elements that count as one unit of moved data."""
_LARGE = 64.0
"""Units towards which larger amounts saturate, so that no tensor drowns all others."""
CHANGES = 6 * 5 + 3
"""What ``changes_of`` says of a node."""
AMOUNTS = 3
"""Kinds of moved data that it tells apart."""


class LayoutPart(nn.Module):
    """The configuration's part of the first layer: [B,N,H], and the amounts [B,N,3] it moves.

    Besides the values themselves a node sees, per tensor, whether the order differs from
    row-major and whether the minor-most dimension does, alone and times the size of the tensors
    involved, and how much lies in another order at its producers than it wants to read.
    """

    def __init__(self, hidden: int, hidden_share: float):
        super().__init__()
        self.hide = nn.Dropout(hidden_share)
        self.values = nn.Linear(SLOTS * _VALUES, hidden)
        self.changes = nn.Linear(CHANGES, hidden, bias=False)
        self.register_buffer("numbers", torch.arange(_VALUES).float() - 2, persistent=False)

    def forward(self, batch: SegmentBatch) -> tuple[Tensor, Tensor]:
        # As arithmetic: comparing integers is several times slower in ONNX Runtime.
        distance = torch.abs(batch.config.to(torch.float32).unsqueeze(-1) - self.numbers)
        one_hot = torch.relu(1 - distance)
        changes, amounts = changes_of(batch, one_hot[..., 2:])
        values = self.values(self.hide(one_hot.flatten(2)))
        return values + self.changes(changes), amounts


def changes_of(batch: SegmentBatch, one_hot: Tensor) -> tuple[Tensor, Tensor]:
    """What a configuration changes at every node, [B,N,33], and the amounts it moves, [B,N,3].

    ``one_hot`` [B,N,18,6] says which dimension is at which place.
    """
    changed = _changed(batch.config).to(torch.float32)
    sizes = rows_of(_sizes(batch), batch.segment)
    products = (changed.unsqueeze(-1) * sizes.unsqueeze(-2)).flatten(2)
    disagreed = _disagreed(batch, one_hot, changed[..., :3])
    changes = torch.cat([changed, products, torch.sqrt(disagreed)], -1)
    amounts = torch.cat([_moved(batch, changed), disagreed.sum(-1, keepdim=True)], -1)
    return changes, amounts / (1 + amounts / _LARGE)


def _changed(config: Tensor) -> Tensor:
    """[B,N,6]: per tensor, order changed and minor-most dimension changed."""
    tensors = config.unflatten(-1, (3, 6))
    left, right = tensors[..., :-1], tensors[..., 1:]
    ascends = ((left < right) & (right >= 0)).any(-1)
    minor = tensors[..., 0] < tensors.amax(-1)
    return torch.cat([ascends, minor], -1)


def _sizes(batch: SegmentBatch) -> Tensor:
    """[S,N,4]: how large a node's output and its operands together are, two ways each."""
    elements = batch.elements()
    both = torch.cat([elements, batch.edges @ elements], -1)
    # The logarithm orders sizes, the root keeps sums of bytes comparable across nodes.
    return torch.cat([torch.log1p(both) / 8, (torch.sqrt(both) / 256).clamp(max=16)], -1)


def _moved(batch: SegmentBatch, changed: Tensor) -> Tensor:
    """[B,N,2]: elements of tensors with a changed order, and with a changed minor dimension."""
    elements = batch.elements()
    output = rows_of(elements, batch.segment)
    operand = rows_of(mean_weights(batch.edges) @ elements, batch.segment)
    tensors = changed.unflatten(-1, (2, 3))
    inputs = tensors[..., 1] + tensors[..., 2]
    return (tensors[..., 0] * output + inputs * operand) / _BYTES_SCALE


def _disagreed(batch: SegmentBatch, one_hot: Tensor, changed: Tensor) -> Tensor:
    """[B,N,3]: elements that arrive in another order than the first and the second input ask
    for, and elements of the own output that its users ask for in another order.

    ``one_hot`` [B,N,18,6] says which dimension is at which place, ``changed`` [B,N,3] whether
    the order differs from row-major, which is what everything without a choice has.
    """
    written, first, second = one_hot.unflatten(2, (3, 6)).flatten(3).unbind(2)
    edges = rows_of(batch.edges * batch.elements().mT, batch.segment) / _BYTES_SCALE
    by_input = [
        edges * _differs(asked, written, changed[..., k], changed[..., 0])
        for k, asked in ((1, first), (2, second))
    ]
    users = (by_input[0] + by_input[1]).sum(1) / 2
    return torch.stack([by_input[0].sum(-1), by_input[1].sum(-1), users], -1)


def _differs(asked: Tensor, written: Tensor, asks: Tensor, writes: Tensor) -> Tensor:
    """[B,N,N]: 1 where the row's input order is not the column's output order."""
    same = asked @ written.mT
    places = asked.sum(-1, keepdim=True)
    both = asks.unsqueeze(-1) * writes.unsqueeze(-2)
    either = asks.unsqueeze(-1) + writes.unsqueeze(-2) - both
    return either - both * (same >= places).to(same.dtype)
