"""Layers over whole graphs: averages over edges, and attention across configurations."""

import torch
from torch import Tensor, nn


def sum_over(h: Tensor, at: Tensor, of: Tensor, kept: Tensor | None = None) -> Tensor:
    """Sums h [C,N,W] of the nodes ``of`` [E] at the nodes ``at`` [E]: [C,N,W].

    If ``kept`` f32 [E] is given, only the edges where it is 1 count. A matrix [N,N] would be too
    large for a whole graph. This exports as ScatterND, which is fast.
    """
    nothing = torch.zeros_like(h)
    terms = h.index_select(1, of)
    return nothing.index_add(1, at, terms if kept is None else terms * kept.unsqueeze(-1))


def degree(at: Tensor, nodes: int, kept: Tensor | None = None) -> Tensor:
    """Counts how often each of ``nodes`` is in ``at`` [E], where ``kept`` is 1: f32 [N]."""
    nothing = torch.zeros(nodes, device=at.device)
    return nothing.index_add(
        0, at, torch.ones_like(at, dtype=torch.float) if kept is None else kept
    )


def mean_over(h: Tensor, at: Tensor, of: Tensor, kept: Tensor | None = None) -> Tensor:
    """Averages h [C,N,W] as ``sum_over`` sums it; 0 at nodes without edges: [C,N,W]."""
    total = sum_over(h, at, of, kept)
    return total / degree(at, h.shape[1], kept).clamp(min=1).unsqueeze(-1)


class CrossConfigurationAttention(nn.Module):
    """Concatenates channels with their product with the softmax over configurations.

    TGraph (2024), section 2.3.2, equation 6: elementwise, with one learned temperature.
    """

    def __init__(self):
        super().__init__()
        self.temperature = nn.Parameter(torch.tensor(0.5))

    def forward(self, x: Tensor) -> Tensor:
        """Maps x [C,N,W] to [C,N,2W]."""
        return torch.cat([x, x * torch.softmax(x / self.temperature, 0)], -1)
