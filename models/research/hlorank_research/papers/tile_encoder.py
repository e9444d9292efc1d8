"""What the encoders of the papers' tile models share: one segment is a whole kernel."""

from itertools import pairwise

import torch
from torch import Tensor, nn

from hlorank_training.models.graph_layers import absent, rows_of, sum_of_nodes
from hlorank_training.models.segment_batch import SegmentBatch


class Readout(nn.Module):
    """Maps embeddings f32 [C,D] to scores f32 [C] by dense layers."""

    def __init__(self, *widths: int, activation: nn.Module):
        super().__init__()
        layers: list[nn.Module] = []
        for width, following in pairwise(widths):
            layers += [nn.Linear(width, following), activation]
        self.layers = nn.Sequential(*layers, nn.Linear(widths[-1], 1))

    def forward(self, sum: Tensor) -> Tensor:
        """Maps [C,D] to [C]."""
        return self.layers(sum).squeeze(-1)


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


def with_tile(nodes: Tensor, tile: Tensor) -> Tensor:
    """Joins a tile [B,C] to every node [B,N,F]: [B,N,C+F]."""
    return torch.cat([tile.unsqueeze(1).expand(-1, nodes.shape[1], -1), nodes], -1)


def every_row(batch: SegmentBatch, static: Tensor) -> Tensor:
    """Maps [S, ...] to [B, ...], the segment of every row."""
    return rows_of(static, batch.segment)
