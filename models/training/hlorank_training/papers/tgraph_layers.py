"""Layers of TGraph (2023 and 2024, section 2), over kernels and over whole graphs."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hlorank_training.models.graph_layers import look_up
from hlorank_training.models.segment_model import FEATURES, OPCODES
from hlorank_training.papers.tile_encoder import ZScore

_EPSILON = 1e-5
_BOTTLENECK = 8
"""Divisor of a layer's width inside the channel attention."""
_NUMBERS = 134
"""Feature columns before those of the layout, which are embedded."""
_LAYOUT_COLUMNS = FEATURES - _NUMBERS
_VALUES = 8
_LOWEST = -2
"""Number of the values of layouts, and the lowest: a place of a node that is not configurable."""

OfNodes = Callable[[Tensor], Tensor]
"""Maps [...,N,H] to [...,N,H]."""


@dataclass(frozen=True)
class Nodes:
    """What the layers do across the nodes of a graph."""

    norm: OfNodes
    """Instance norm over the nodes."""
    users: OfNodes
    """Mean over the users of each node, 0 without users; the sum in the paper's form."""


def instance_norm(x: Tensor, mask: Tensor | None = None) -> Tensor:
    """Scales every channel of x [S,N,H] to mean 0 and variance 1 over the nodes whose ``mask``
    [S,N] is 1; a single node becomes 0. There are no weights and no running statistics."""
    if mask is None:
        centred = x - x.mean(1, keepdim=True)
        return centred * torch.rsqrt((centred**2).mean(1, keepdim=True) + _EPSILON)
    real = mask.unsqueeze(-1)
    count = real.sum(1, keepdim=True)
    centred = (x - (x * real).sum(1, keepdim=True) / count) * real
    return centred * torch.rsqrt((centred**2).sum(1, keepdim=True) / count + _EPSILON)


class NodeInputs(nn.Module):
    """The features of nodes: scaled numbers, embedded layouts, and the embedded opcode."""

    def __init__(self, opcode: int, value: int):
        super().__init__()
        self.features = ZScore(_NUMBERS)
        self.opcode = nn.Embedding(OPCODES, opcode)
        self.value = nn.Embedding(_VALUES, value)
        self.width = _NUMBERS + _LAYOUT_COLUMNS * value + opcode

    def fit(self, rows: Tensor) -> None:
        """Computes the means and deviations of raw features [n,140]."""
        self.features.fit(rows[:, :_NUMBERS])

    def forward(self, opcode: Tensor, features: Tensor) -> Tensor:
        """Maps opcode i64 [...,N] and features f32 [...,N,140] to [...,N,width]."""
        numbers = features[..., :_NUMBERS]
        layout = features[..., _NUMBERS:]
        embedded = self.values(layout.to(torch.int64))
        return torch.cat(
            [self.features(numbers), embedded, look_up(self.opcode.weight, opcode)], -1
        )

    def values(self, layout: Tensor) -> Tensor:
        """Embeds layout values i64 [...,K] between -2 and 5: [...,K * value]."""
        index = (layout - _LOWEST).clamp(0, _VALUES - 1)
        return look_up(self.value.weight, index).flatten(-2)

    def not_configurable(self, slots: int) -> Tensor:
        """Returns the embedded slots of a node that is not configurable: [slots * value]."""
        return self.value.weight[0].repeat(slots)


class ChannelAttention(nn.Module):
    """Multiplies each channel by a weight between 0 and 1 that all channels of the node decide.

    TGraph equation 5.
    """

    def __init__(self, width: int):
        super().__init__()
        self.squeeze = nn.Linear(width, width // _BOTTLENECK)
        self.excite = nn.Linear(width // _BOTTLENECK, width)

    def forward(self, x: Tensor) -> Tensor:
        """Maps [..., H] to [..., H]."""
        return x * torch.sigmoid(self.excite(torch.relu(self.squeeze(x))))


class Doubled(nn.Module):
    """Attention across configurations (equation 6) of a single configuration.

    The softmax over one configuration is 1 at any temperature, so the channels are repeated, and
    the temperature has no effect and no gradient.
    """

    def __init__(self):
        super().__init__()
        self.temperature = nn.Parameter(torch.tensor(0.5))

    def forward(self, x: Tensor) -> Tensor:
        """Maps [..., H] to [..., 2H]."""
        return torch.cat([x, x], -1)


@dataclass(frozen=True)
class Attentions:
    """Creates the attentions of a layer."""

    cross: Callable[[], nn.Module] = Doubled
    doubles: bool = True
    """Whether ``cross`` doubles the channels, so that layers before it are half as wide."""

    def inner(self, hidden: int) -> int:
        """Returns the width before ``cross``, of which the width after it is ``hidden``."""
        return hidden // 2 if self.doubles else hidden

    def of(self, hidden: int) -> nn.Sequential:
        """Returns both attentions, which end at the width ``hidden``."""
        return nn.Sequential(ChannelAttention(self.inner(hidden)), self.cross())


def first_linear(inputs: int, width: int) -> nn.Linear:
    """Returns a linear layer with TGraph's initial weights."""
    linear = nn.Linear(inputs, width)
    nn.init.xavier_normal_(linear.weight)
    nn.init.constant_(linear.bias, 0.01)
    return linear


class Dense(nn.Module):
    """Instance norm, both attentions and GELU, after a linear layer."""

    def __init__(self, linear: nn.Module, hidden: int, attentions: Attentions):
        super().__init__()
        self.linear = linear
        self.attend = attentions.of(hidden)

    def forward(self, nodes: Nodes, *inputs) -> Tensor:
        """Maps the inputs of the linear layer to [S,N,H]."""
        return F.gelu(self.attend(nodes.norm(self.linear(*inputs))))


class SageBlock(nn.Module):
    """Instance norm, the mean over users, both attentions, and the input added."""

    def __init__(self, hidden: int, dropout: float, attentions: Attentions = Attentions()):
        super().__init__()
        inner = attentions.inner(hidden)
        self.users = nn.Linear(hidden, inner)
        self.self_part = nn.Linear(hidden, inner, bias=False)
        self.attend = attentions.of(hidden)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, nodes: Nodes) -> Tensor:
        """Maps x [S,N,H] to [S,N,H]."""
        normed = nodes.norm(x)
        # Projecting before averaging is equivalent, and the averages are narrower.
        projected = nodes.users(F.linear(normed, self.users.weight))
        out = projected + self.users.bias + self.self_part(normed)
        return self.dropout(F.gelu(self.attend(out) + x))
