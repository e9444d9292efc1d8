"""How the papers scale features: by the minimum and maximum, or by the mean and deviation."""

import torch
from torch import Tensor, nn


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
