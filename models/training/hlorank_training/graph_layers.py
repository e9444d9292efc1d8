"""The layers that both encoders are made of, written so that they export to fast ONNX."""

import torch
from torch import Tensor, nn

_CLIP = 6.0
"""Standard deviations beyond which a feature says nothing more; bounds unseen graphs."""


def symmetric_log(x: Tensor) -> Tensor:
    """sign(x) log(1 + |x|): sizes and products span ten orders of magnitude."""
    return torch.sign(x) * torch.log1p(torch.abs(x))


def rows_of(static: Tensor, segment: Tensor) -> Tensor:
    """[S, ...] to [B, ...]. Exports as Gather; plain indexing becomes the slower GatherND."""
    return torch.index_select(static, 0, segment)


def mean_weights(edges: Tensor) -> Tensor:
    """Edges [S, N, N] to weights whose rows sum to 1, or to 0 where there is no edge."""
    return edges / edges.sum(-1, keepdim=True).clamp(min=1)


class Standardise(nn.Module):
    """Symmetric log, then zero mean and unit deviation on the training rows; constants become 0."""

    def __init__(self, columns: int):
        super().__init__()
        self.register_buffer("mean", torch.zeros(columns))
        self.register_buffer("scale", torch.ones(columns))

    def fit(self, rows: Tensor) -> None:
        """Take the statistics of raw ``rows`` [n, columns]."""
        logged = symmetric_log(rows.double())
        deviation = logged.std(0, unbiased=False)
        constant = deviation < 1e-6
        self.mean.copy_(logged.mean(0))
        self.scale.copy_(torch.where(constant, 0.0, 1 / deviation.clamp(min=1e-6)))

    def forward(self, x: Tensor) -> Tensor:
        return torch.clamp((symmetric_log(x) - self.mean) * self.scale, -_CLIP, _CLIP)


class RootMeanSquareNorm(nn.Module):
    """Scales rows to unit root mean square; faster than LayerNorm in ONNX Runtime."""

    def __init__(self, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        square = (x * x).mean(-1, keepdim=True)
        return x * (1 / torch.sqrt(square + 1e-6)) * self.weight


class Sage(nn.Module):
    """GraphSAGE with means over operands and over users, and a residual.

    Without edges it is a layer that sees each node alone.
    """

    def __init__(self, hidden: int, dropout: float, edges: bool):
        super().__init__()
        self.self_part = nn.Linear(hidden, hidden)
        self.around = nn.ModuleList(
            nn.Linear(hidden, hidden, bias=False) for _ in range(2 if edges else 0)
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, h: Tensor, neighbours: tuple[Tensor, Tensor]) -> Tensor:
        """h [B,N,H]; weights of the operands and of the users, [B,N,N] each."""
        out = self.self_part(h)
        for weights, linear in zip(neighbours, self.around, strict=False):
            # Project first, then average: the same, and the products stay H wide.
            out = out + weights @ linear(h)
        return h + self.dropout(torch.relu(out))


class Attention(nn.Module):
    """One Transformer encoder layer over the nodes of a segment."""

    def __init__(self, hidden: int, heads: int, dropout: float):
        super().__init__()
        self.heads = heads
        self.query_key_value = nn.Linear(hidden, 3 * hidden)
        self.output = nn.Linear(hidden, hidden)
        self.before_attention = RootMeanSquareNorm(hidden)
        self.before_dense = RootMeanSquareNorm(hidden)
        self.dense = nn.Sequential(
            nn.Linear(hidden, 2 * hidden), nn.ReLU(), nn.Linear(2 * hidden, hidden)
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, h: Tensor, hidden_keys: Tensor) -> Tensor:
        """h [B,N,H]; ``hidden_keys`` [B,1,1,N] is hugely negative where a node pads."""
        h = h + self.dropout(self._attend(self.before_attention(h), hidden_keys))
        return h + self.dropout(self.dense(self.before_dense(h)))

    def _attend(self, h: Tensor, hidden_keys: Tensor) -> Tensor:
        parts = self.query_key_value(h).unflatten(-1, (3, self.heads, -1))
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        weights = query @ key.transpose(-1, -2) * (query.shape[-1] ** -0.5)
        mixed = torch.softmax(weights + hidden_keys, -1) @ value
        return self.output(mixed.transpose(1, 2).flatten(2))
