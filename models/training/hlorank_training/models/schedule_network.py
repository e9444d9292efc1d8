"""Graph convolutions over the nodes of a scheduled graph: Singh 2021, sections II to IV."""

import torch
from torch import Tensor, nn

from hlorank_training.models.graph_layers import mean_weights_with_self


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
        """Maps x [B,N,H], the weights of averages [B,N,N] and mask [B,N] to [B,N,H]."""
        return torch.relu(self.norm(around @ self.linear(x), mask))


class ScheduleNetwork(nn.Module):
    """Maps the features of nodes and of their schedule to vectors of nodes."""

    def __init__(self, inputs: tuple[int, int], widths: tuple[int, int], blocks: int):
        """``inputs`` and ``widths`` are those of a node without the schedule, and of the schedule
        at a node."""
        super().__init__()
        self.invariant, self.dependent = map(nn.Linear, inputs, widths)
        self.blocks = nn.ModuleList(Convolution(sum(widths)) for _ in range(blocks))

    def forward(self, first: Tensor, edges: Tensor, mask: Tensor) -> list[Tensor]:
        """Maps E0 [B,N,H], edges [B,N,N] and mask [B,N] to the vectors before and after every
        block: [B,N,H] each. A node averages itself, its operands and its users."""
        around = mean_weights_with_self(torch.maximum(edges, edges.mT))
        levels = [first]
        for block in self.blocks:
            levels.append(block(levels[-1], around, mask))
        return levels
