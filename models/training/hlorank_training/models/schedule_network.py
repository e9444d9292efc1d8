"""Graph convolutions over the nodes of a scheduled graph: Singh 2021, sections II to IV."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from hlorank_training.models.graph_layers import mean_weights_with_self, sum_of_nodes


@dataclass(frozen=True)
class ScheduleSizes:
    """Sizes of the network; the defaults are the paper's."""

    invariant: int = 220
    """Width that the features of a node have, without the schedule."""
    dependent: int = 60
    """Width that the schedule has at a node."""
    blocks: int = 2
    directed: bool = False
    """Whether a node averages its operands alone, instead of operands and users."""


def averages(edges: Tensor, directed: bool) -> Tensor:
    """Maps edges [B,N,N] to weights whose rows average a node and its neighbours."""
    return mean_weights_with_self(edges if directed else torch.maximum(edges, edges.mT))


class NodeNorm(nn.BatchNorm1d):
    """Batch normalization over the real nodes of the rows; running statistics when served.

    Rows of different padded sizes are encoded, and so normalized in training, apart.
    """

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Maps x [B,N,H] and mask [B,N] to [B,N,H]; padding nodes become 0 in training."""
        if not self.training:
            scale = self.weight * torch.rsqrt(self.running_var + self.eps)
            return (x - self.running_mean) * scale + self.bias
        real = mask > 0
        out = torch.zeros_like(x)
        out[real] = super().forward(x[real])
        return out


class Convolution(nn.Module):
    """A linear layer, averages over neighbours, batch normalization and a rectifier."""

    def __init__(self, width: int):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.norm = NodeNorm(width)

    def forward(self, x: Tensor, around: Tensor, mask: Tensor) -> Tensor:
        """Maps x [B,N,H], ``averages`` [B,N,N] and mask [B,N] to [B,N,H]."""
        return torch.relu(self.norm(around @ self.linear(x), mask))


class ScheduleNetwork(nn.Module):
    """Maps the features of nodes and of their schedule to a run time, without the bias."""

    def __init__(self, inputs: tuple[int, int], settings: ScheduleSizes):
        super().__init__()
        self.directed = settings.directed
        width = settings.invariant + settings.dependent
        self.invariant = nn.Linear(inputs[0], settings.invariant)
        self.dependent = nn.Linear(inputs[1], settings.dependent)
        self.blocks = nn.ModuleList(Convolution(width) for _ in range(settings.blocks))
        self.readout = nn.Linear((settings.blocks + 1) * width, 1, bias=False)

    def forward(self, first: Tensor, edges: Tensor, mask: Tensor) -> Tensor:
        """Maps E0 [B,N,H], edges [B,N,N] and mask [B,N] to [B,1]."""
        sums = [sum_of_nodes(vectors, mask) for vectors in self.levels(first, edges, mask)]
        return self.readout(torch.cat(sums, -1))

    def levels(self, first: Tensor, edges: Tensor, mask: Tensor) -> list[Tensor]:
        """Returns the nodes' vectors before and after every block: [B,N,H] each."""
        around = averages(edges, self.directed)
        levels = [first]
        for block in self.blocks:
            levels.append(block(levels[-1], around, mask))
        return levels
