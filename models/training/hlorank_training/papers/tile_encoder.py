"""What the papers' models share: how features are scaled, heads, and sums over a kernel's nodes."""

import torch
from torch import Tensor, nn

from hlorank_training.models.graph_layers import absent, rows_of, sum_of_nodes
from hlorank_training.models.segment_model import SegmentBatch


class Scale(nn.Module):
    """Subtracts an offset and multiplies by a factor, by column; both are part of the model."""

    def __init__(self, columns: int):
        super().__init__()
        self.register_buffer("offset", torch.zeros(columns))
        self.register_buffer("factor", torch.ones(columns))

    def forward(self, x: Tensor) -> Tensor:
        """Maps raw columns [..., columns] to scaled ones."""
        return (x - self.offset) * self.factor


class MinMax(Scale):
    """Scales the training rows to [0,1]; others are not clipped, and constant columns become 0."""

    def fit(self, rows: Tensor) -> None:
        """Computes the statistics of raw ``rows`` [n, columns]."""
        low, high = rows.double().aminmax(dim=0)
        self.offset.copy_(low)
        self.factor.copy_(torch.where(high > low, 1 / (high - low), 0.0))


class ZScore(Scale):
    """Scales the training rows to mean 0 and deviation 1; constant columns become 0."""

    def fit(self, rows: Tensor) -> None:
        """Computes the statistics of raw ``rows`` [n, columns]."""
        deviation = rows.double().std(0, unbiased=False)
        self.offset.copy_(rows.double().mean(0))
        self.factor.copy_(torch.where(deviation < 1e-6, 1.0, 1 / deviation))


class LinearHead(nn.Module):
    """Maps embeddings f32 [C,D] to scores f32 [C] by one linear layer."""

    def __init__(self, width: int, bias: bool = True):
        super().__init__()
        self.linear = nn.Linear(width, 1, bias=bias)

    def forward(self, sum: Tensor) -> Tensor:
        """Maps [C,D] to [C]."""
        return self.linear(sum).squeeze(-1)


def mean_of_nodes(h: Tensor, mask: Tensor) -> Tensor:
    """Averages ``h`` [B,N,H] over the nodes whose ``mask`` [B,N] is 1, at least one: [B,H]."""
    return sum_of_nodes(h, mask) / mask.sum(-1, keepdim=True)


def max_of_nodes(h: Tensor, mask: Tensor) -> Tensor:
    """Takes the maximum of ``h`` [B,N,H] over the nodes whose ``mask`` [B,N] is 1: [B,H]."""
    return (h + absent(mask).unsqueeze(-1)).amax(1)


def every_row(batch: SegmentBatch, static: Tensor) -> Tensor:
    """Maps [S, ...] to [B, ...], the segment of every row."""
    return rows_of(static, batch.segment)
