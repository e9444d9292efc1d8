"""Layers of TGraph (2023 and 2024, section 2), over segments of kernels."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_EPSILON = 1e-5
_BOTTLENECK = 8
"""Divisor of a layer's width inside the channel attention."""


def instance_norm(x: Tensor, mask: Tensor) -> Tensor:
    """Scales every channel of x [S,N,H] to mean 0 and variance 1 over the nodes whose ``mask``
    [S,N] is 1; a single node becomes 0. There are no weights and no running statistics."""
    real = mask.unsqueeze(-1)
    count = real.sum(1, keepdim=True)
    centred = (x - (x * real).sum(1, keepdim=True) / count) * real
    return centred * torch.rsqrt((centred**2).sum(1, keepdim=True) / count + _EPSILON)


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


class LinearActNorm(nn.Module):
    """A linear layer, instance norm, channel attention, and attention across configurations."""

    def __init__(self, inputs: int, width: int):
        super().__init__()
        self.linear = nn.Linear(inputs, width)
        nn.init.xavier_normal_(self.linear.weight)
        nn.init.constant_(self.linear.bias, 0.01)
        self.channels, self.cross = ChannelAttention(width), Doubled()

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Maps x [S,N,F] and mask [S,N] to [S,N,2H]."""
        return F.gelu(self.cross(self.channels(instance_norm(self.linear(x), mask))))


class SageBlock(nn.Module):
    """Instance norm, the mean over users, both attentions, and the input added."""

    def __init__(self, hidden: int, dropout: float):
        super().__init__()
        self.users = nn.Linear(hidden, hidden // 2)
        self.self_part = nn.Linear(hidden, hidden // 2, bias=False)
        self.channels, self.cross = ChannelAttention(hidden // 2), Doubled()
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, users: Tensor, mask: Tensor) -> Tensor:
        """Maps x [S,N,H], averages of users [S,N,N] and mask [S,N] to [S,N,H]."""
        normed = instance_norm(x, mask)
        projected = users @ F.linear(normed, self.users.weight)
        out = projected + self.users.bias + self.self_part(normed)
        return self.dropout(F.gelu(self.cross(self.channels(out)) + x))
