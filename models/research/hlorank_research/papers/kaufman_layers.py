"""Layers along the edges of Kaufman 2021 (section 3.2), without biases."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hlorank_training.models.graph_layers import absent, mean_weights

_SLOPE = 0.2


def limited(edges: Tensor, neighbours: int) -> Tensor:
    """Keeps the first ``neighbours`` columns of every row of edges [B,N,N]."""
    return edges * (edges.cumsum(-1) <= neighbours).to(edges.dtype)


def directions(edges: Tensor, neighbours: int, directed: bool) -> list[Tensor]:
    """Returns operands and users of every node, or the union of both: [B,N,N] each."""
    every = [edges, edges.mT] if directed else [torch.maximum(edges, edges.mT)]
    return [limited(one, neighbours) for one in every]


class Mean(nn.Module):
    """A dense layer and the mean over neighbours."""

    def __init__(self, hidden: int):
        super().__init__()
        self.dense = nn.Linear(hidden, hidden, bias=False)

    def forward(self, h: Tensor, edges: Tensor) -> Tensor:
        """Maps h [B,N,H] and edges [B,N,N] to [B,N,H]."""
        return mean_weights(edges) @ torch.relu(self.dense(h))


class GraphAttention(nn.Module):
    """A dense layer and attention over neighbours, 0 without neighbours."""

    def __init__(self, hidden: int, heads: int):
        super().__init__()
        self.dense = nn.Linear(hidden, hidden, bias=False)
        self.own = nn.Parameter(torch.empty(heads, hidden // heads))
        self.other = nn.Parameter(torch.empty(heads, hidden // heads))
        nn.init.xavier_uniform_(self.own)
        nn.init.xavier_uniform_(self.other)

    def forward(self, h: Tensor, edges: Tensor) -> Tensor:
        """Maps h [B,N,H] and edges [B,N,N] to [B,N,H]."""
        values = torch.relu(self.dense(h)).unflatten(-1, self.own.shape).transpose(1, 2)
        own = (values * self.own.unsqueeze(1)).sum(-1, keepdim=True)
        other = (values * self.other.unsqueeze(1)).sum(-1, keepdim=True)
        real = edges.unsqueeze(1)
        scores = F.leaky_relu(own + other.mT, _SLOPE) + absent(real)
        return ((torch.softmax(scores, -1) * real) @ values).transpose(1, 2).flatten(2)


class NeighbourBlock(nn.Module):
    """Joins a node with its neighbours of every direction; rows have norm 1."""

    def __init__(self, hidden: int, around: list[nn.Module]):
        super().__init__()
        self.around = nn.ModuleList(around)
        self.join = nn.Linear((1 + len(around)) * hidden, hidden, bias=False)

    def forward(self, h: Tensor, edges: list[Tensor]) -> Tensor:
        """Maps h [B,N,H] and the edges of every direction [B,N,N] to [B,N,H]."""
        terms = [part(h, one) for part, one in zip(self.around, edges, strict=True)]
        return F.normalize(torch.relu(self.join(torch.cat([h, *terms], -1))), dim=-1)
