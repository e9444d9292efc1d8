"""Reductions of a kernel's nodes to one vector: Kaufman 2021 (section 3.2), without biases."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hlorank_research.papers.tile_encoder import max_of_nodes, mean_of_nodes
from hlorank_training.models.graph_layers import absent, sum_of_nodes

_TRANSFORMER_HEADS = 4


class PerNode(nn.Module):
    """Sums over nodes; a linear head then sums a score of every node."""

    def __init__(self, hidden: int):
        super().__init__()
        self.width = hidden

    def forward(self, h: Tensor, mask: Tensor) -> Tensor:
        """Maps h [B,N,H] and mask [B,N] to [B,H]."""
        return sum_of_nodes(h, mask)


class ColumnWise(nn.Module):
    """Mean and maximum over nodes."""

    def __init__(self, hidden: int):
        super().__init__()
        self.width = 2 * hidden

    def forward(self, h: Tensor, mask: Tensor) -> Tensor:
        """Maps h [B,N,H] and mask [B,N] to [B,2H]."""
        return torch.cat([mean_of_nodes(h, mask), max_of_nodes(h, mask)], -1)


class LastState(nn.Module):
    """The state of an LSTM after the last node; ascending node numbers are a topological order."""

    def __init__(self, hidden: int):
        super().__init__()
        self.width = hidden
        self.lstm = nn.LSTM(hidden, hidden, bias=False, batch_first=True)

    def forward(self, h: Tensor, mask: Tensor) -> Tensor:
        """Maps h [B,N,H] and mask [B,N] to [B,H]; real nodes precede padding nodes."""
        count = mask.sum(-1).to(torch.int64)
        if torch.compiler.is_exporting():
            return self._exported(h, count)
        states, _ = self.lstm(h)
        last = (count - 1).view(-1, 1, 1).expand(-1, 1, self.width)
        return states.gather(1, last).squeeze(1)

    def _exported(self, h: Tensor, count: Tensor) -> Tensor:
        """ONNX's LSTM stops at the length of each row; its gates have another order."""
        weights = (self.lstm.weight_ih_l0, self.lstm.weight_hh_l0)
        input_weight, state_weight = (_onnx_gates(weight) for weight in weights)
        rows = h.shape[0]
        nodes = h.shape[1]
        _, state, _ = torch.onnx.ops.symbolic_multi_out(
            "LSTM",
            (h.transpose(0, 1), input_weight, state_weight, None, count.to(torch.int32)),
            attrs={"hidden_size": self.width},
            dtypes=(torch.float32,) * 3,
            shapes=((nodes, 1, rows, self.width), (1, rows, self.width), (1, rows, self.width)),
            version=22,
        )
        return state.squeeze(0)


def _onnx_gates(weight: Tensor) -> Tensor:
    """Reorders torch's gates (input, forget, cell, output) to ONNX's: [1,4H,H]."""
    taken, forgotten, cell, output = weight.chunk(4)
    return torch.cat([taken, output, forgotten, cell]).unsqueeze(0)


class TransformerSum(nn.Module):
    """Transformer layers over the nodes without positions, and a sum."""

    def __init__(self, hidden: int, layers: int):
        super().__init__()
        self.width = hidden
        self.layers = nn.ModuleList(TransformerLayer(hidden) for _ in range(layers))

    def forward(self, h: Tensor, mask: Tensor) -> Tensor:
        """Maps h [B,N,H] and mask [B,N] to [B,H]."""
        hidden_keys = absent(mask)[:, None, None]
        for layer in self.layers:
            h = layer(h, hidden_keys)
        return sum_of_nodes(h, mask)


class TransformerLayer(nn.Module):
    """Attention and two dense layers, each added and then normalized."""

    def __init__(self, hidden: int):
        super().__init__()
        self.query_key_value = nn.Linear(hidden, 3 * hidden, bias=False)
        self.output = nn.Linear(hidden, hidden, bias=False)
        self.dense = nn.Sequential(
            nn.Linear(hidden, 4 * hidden, bias=False),
            nn.ReLU(),
            nn.Linear(4 * hidden, hidden, bias=False),
        )
        self.after_attention = nn.LayerNorm(hidden, bias=False)
        self.after_dense = nn.LayerNorm(hidden, bias=False)

    def forward(self, h: Tensor, hidden_keys: Tensor) -> Tensor:
        """Maps h [B,N,H] to [B,N,H]; ``hidden_keys`` [B,1,1,N] is very negative at padding."""
        parts = self.query_key_value(h).chunk(3, -1)
        heads = (part.unflatten(-1, (_TRANSFORMER_HEADS, -1)).transpose(1, 2) for part in parts)
        query, key, value = heads
        scores = query @ key.mT / query.shape[-1] ** 0.5 + hidden_keys
        mixed = (torch.softmax(scores, -1) @ value).transpose(1, 2).flatten(2)
        h = self.after_attention(h + self.output(mixed))
        return self.after_dense(h + self.dense(h))


def module_norm(kernel: Tensor) -> Tensor:
    """Divides vectors [B,H] by their norm."""
    return F.normalize(kernel, dim=-1)
