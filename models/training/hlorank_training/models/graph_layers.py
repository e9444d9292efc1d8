"""The layers of both encoders, implemented so that their ONNX export is fast."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

ABSENT = -1e9
"""Replaces or is added to what a maximum or a softmax must ignore."""
_HIDDEN = -50.0
"""Is added to the attention scores of padding, whose weights are then about e^-50: too small to
change a sum in f32. A much lower score would give subnormal weights, which processors multiply
slowly."""
_VERY_LARGE = 1e30
"""Scales every number of at least 1e-30 to 1 or more."""
_CLIP = 6.0
"""Standardized features are clipped at this many deviations, which bounds unseen graphs."""
_EPSILON = 1e-6
"""Keeps the norm of a row of zeros finite."""


def symmetric_log(x: Tensor) -> Tensor:
    """Returns sign(x) log(1 + |x|), since sizes and products span ten orders of magnitude.

    ONNX Runtime clips much faster than it takes signs. The logarithm is 0 where they differ.
    """
    sign = torch.clamp(x * _VERY_LARGE, -1, 1)
    return sign * torch.log1p(torch.abs(x))


def absent(mask: Tensor) -> Tensor:
    """Maps ``mask`` [B,N] to 0 at real nodes and ``ABSENT`` at padding nodes."""
    return (1 - mask) * ABSENT


def hidden_keys(mask: Tensor) -> Tensor:
    """Maps the mask [S,N] of nodes to [S,1,N,N], which is added to the attention scores."""
    hidden = (1 - mask) * _HIDDEN
    return hidden[:, None, None].expand(-1, -1, mask.shape[1], -1)


def look_up(table: Tensor, index: Tensor) -> Tensor:
    """Returns rows of ``table`` [R, ...] by an ``index`` of any shape.

    This exports as Gather, while plain indexing exports as GatherND, which is slower. The first
    length is left open: an exported model might take it from a tensor that all rows share.
    """
    found = torch.index_select(table, 0, index.flatten())
    rows = -1 if torch.compiler.is_exporting() else index.shape[0]
    return found.view(rows, *index.shape[1:], *table.shape[1:])


def rows_of(static: Tensor, segment: Tensor) -> Tensor:
    """Maps [S, ...] to [B, ...]; in an exported model to [1, ...] if S is 1."""
    return torch.index_select(static, 0, segment)


def rows_apart(x: Tensor, features: int) -> Tensor:
    """Maps [B,1,F*N] to [B,F,N], given F.

    The exporter would compute the lengths at run time, though ONNX's Reshape infers them.
    """
    if torch.compiler.is_exporting():
        shape = torch.tensor([0, features, -1])
        lengths = (x.shape[0], features, x.shape[-1] // features)
        return torch.onnx.ops.symbolic("Reshape", (x, shape), dtype=x.dtype, shape=lengths)
    return x.view(x.shape[0], features, -1)


def sum_of_nodes(h: Tensor, mask: Tensor) -> Tensor:
    """Sums ``h`` [B,N,H] over the nodes whose ``mask`` [B,N] is 1: [B,H]."""
    return (mask.unsqueeze(1) @ h).squeeze(1)


def adjacency(edges: Tensor, nodes: int) -> Tensor:
    """Maps edges [2,E] to f32 [N,N], 1 where the row consumes the column, however often."""
    place = edges[0] * nodes + edges[1]
    counts = torch.zeros(nodes * nodes).index_add(
        0, place, torch.ones_like(place, dtype=torch.float)
    )
    return counts.clamp(max=1).view(nodes, nodes)


def mean_weights(edges: Tensor) -> Tensor:
    """Maps edges [S, N, N] to weights whose rows sum to 1, or to 0 without edges."""
    return edges / edges.sum(-1, keepdim=True).clamp(min=1)


def mean_weights_with_self(edges: Tensor) -> Tensor:
    """Maps edges [B,N,N] to weights whose rows average a node and the targets of its edges."""
    with_self = edges + torch.eye(edges.shape[-1])
    return with_self / with_self.sum(-1, keepdim=True)


def neighbour_weights(edges: Tensor) -> Tensor:
    """Maps edges [S,N,N] to [S,N,2N]: weights of operands and of users, interleaved."""
    return torch.stack([mean_weights(edges), mean_weights(edges.mT)], -1).flatten(2)


class Standardise(nn.Module):
    """Symmetric log, then standardization by the training rows; constant columns become 0."""

    def __init__(self, columns: int):
        super().__init__()
        self.register_buffer("mean", torch.zeros(columns))
        self.register_buffer("scale", torch.ones(columns))

    def fit(self, rows: Tensor) -> None:
        """Computes the statistics of raw ``rows`` [n, columns]."""
        logged = symmetric_log(rows.double())
        deviation = logged.std(0, unbiased=False)
        constant = deviation < 1e-6
        self.mean.copy_(logged.mean(0))
        self.scale.copy_(torch.where(constant, 0.0, 1 / deviation.clamp(min=1e-6)))

    def forward(self, x: Tensor) -> Tensor:
        return self.of_logarithms(symmetric_log(x))

    def of_logarithms(self, logged: Tensor) -> Tensor:
        """Standardizes what the symmetric logarithm was applied to."""
        return torch.clamp((logged - self.mean) * self.scale, -_CLIP, _CLIP)


class RootMeanSquareNorm(nn.Module):
    """Scales rows to a root mean square of 1; faster than LayerNorm in ONNX Runtime."""

    def __init__(self, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.weight.shape, self.weight, _EPSILON)


class Sage(nn.Module):
    """GraphSAGE with means over operands and over users, and a residual connection."""

    def __init__(self, hidden: int, dropout: float):
        super().__init__()
        self.self_part = nn.Linear(hidden, hidden)
        self.around = nn.ModuleList(nn.Linear(hidden, hidden, bias=False) for _ in range(2))
        self.dropout = nn.Dropout(dropout)

    def forward(self, h: Tensor, neighbours: Tensor) -> Tensor:
        """Maps h [B*N,H] and ``neighbour_weights`` [B,N,2N] to [B*N,H]."""
        # Projecting before averaging is equivalent, and the products stay H wide. A node's two
        # projections are adjacent, so one product adds up both averages.
        projected = F.linear(h, torch.cat([linear.weight for linear in self.around]))
        projected = projected.view(-1, neighbours.shape[-1], h.shape[-1])
        out = self.self_part(h) + (neighbours @ projected).flatten(0, 1)
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
        """Maps h [B*N,H] to [B*N,H]; ``hidden_keys`` [B,1,N,N] is very negative at padding keys."""
        h = h + self.dropout(self._attend(self.before_attention(h), hidden_keys))
        return h + self.dropout(self.dense(self.before_dense(h)))

    def _attend(self, h: Tensor, hidden_keys: Tensor) -> Tensor:
        query, key, value = self.query_key_value.weight.chunk(3)
        query_bias, _, value_bias = self.query_key_value.bias.chunk(3)
        # A bias of keys adds the same amount to all attention scores of a query, which softmax
        # cancels. A bias of values passes through unchanged, since attention sums to 1, so it is
        # folded into the output's bias.
        parts = (F.linear(h, query, query_bias), F.linear(h, key), F.linear(h, value))
        nodes = hidden_keys.shape[-1]
        mixed = self._mix(*(part.view(-1, nodes, h.shape[-1]) for part in parts), hidden_keys)
        bias = torch.addmv(self.output.bias, self.output.weight, value_bias)
        return F.linear(mixed.flatten(0, 1), self.output.weight, bias)

    def _mix(self, query: Tensor, key: Tensor, value: Tensor, hidden_keys: Tensor) -> Tensor:
        """Applies attention over the nodes of each row: [B,N,H] each to [B,N,H]."""
        if torch.compiler.is_exporting():
            # ONNX's Attention operator needs no transposed heads; torch has no gradient of it.
            mixed, *_ = torch.onnx.ops.attention(
                query, key, value, hidden_keys, q_num_heads=self.heads, kv_num_heads=self.heads
            )
            return mixed
        parts = (x.unflatten(-1, (self.heads, -1)).transpose(1, 2) for x in (query, key, value))
        mixed = F.scaled_dot_product_attention(*parts, attn_mask=hidden_keys)
        return mixed.transpose(1, 2).flatten(2)
