"""The GraphSAGE + Transformer segment model: an encoder per row and a head per configuration."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

OPCODES = 128
FEATURES = 140
LAYOUT_SLOTS = 18
LAYOUT_VALUES = 8
TILE_FEATURES = 24
_DIMENSIONS = slice(21, 27)
"""The columns of the node features that hold the output shape."""
_CLIP = 6.0
"""Standard deviations beyond which a feature says nothing more; bounds unseen graphs."""


@dataclass(frozen=True)
class ModelSettings:
    """Sizes of the model."""

    task: str
    """``layout`` or ``tile``"""
    hidden: int = 64
    embedding: int = 64
    heads: int = 4
    dropout: float = 0.1
    feature_dropout: float = 0.0
    """Share of node features hidden in training, so that single graphs are not learnt by heart."""


def symmetric_log(x: Tensor) -> Tensor:
    """sign(x) log(1 + |x|): sizes and products span ten orders of magnitude."""
    return torch.sign(x) * torch.log1p(torch.abs(x))


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


class LayoutConfiguration(nn.Module):
    """The configuration's part of the first layer for layouts: [B, N, 18] to [B, N, H].

    Besides the values themselves it sees, per tensor, whether the order differs from row-major
    and whether the minor-most dimension does, alone and times the size of the tensors involved:
    the bytes that a copy would move.
    """

    def __init__(self, hidden: int):
        super().__init__()
        self.values = nn.Linear(LAYOUT_SLOTS * LAYOUT_VALUES, hidden)
        self.changes = nn.Linear(6 * 5, hidden, bias=False)
        self.register_buffer("numbers", torch.arange(LAYOUT_VALUES).float() - 2, persistent=False)

    def forward(self, config: Tensor, sizes: Tensor) -> Tensor:
        # As arithmetic: comparing integers is several times slower in ONNX Runtime.
        distance = torch.abs(config.to(sizes.dtype).unsqueeze(-1) - self.numbers)
        one_hot = torch.relu(1 - distance).flatten(2)
        changed = _changed(config).to(sizes.dtype)
        products = (changed.unsqueeze(-1) * sizes.unsqueeze(-2)).flatten(2)
        return self.values(one_hot) + self.changes(torch.cat([changed, products], -1))


def _changed(config: Tensor) -> Tensor:
    """[B, N, 6]: per tensor, order changed and minor-most dimension changed."""
    tensors = config.unflatten(-1, (3, 6))
    left, right = tensors[..., :-1], tensors[..., 1:]
    ascends = ((left < right) & (right >= 0)).any(-1)
    minor = tensors[..., 0] < tensors.amax(-1)
    return torch.cat([ascends, minor], -1)


def _moved(changed: Tensor, output: Tensor, operand: Tensor) -> Tensor:
    """[B, N, 2]: elements of tensors with a changed order, and with a changed minor dimension.

    ``changed`` is [B, N, 6]; ``output`` and ``operand``, [B, N, 1], are elements of the output
    and, on average, of an operand.
    """
    tensors = changed.unflatten(-1, (2, 3))
    inputs = tensors[..., 1] + tensors[..., 2]
    return (tensors[..., 0] * output + inputs * operand) / 2**16


class TileConfiguration(nn.Module):
    """The configuration's part of the first layer for tiles: [B, 24] to [B, 1, H].

    Besides the bounds it sees what any tiled loop depends on, whatever the kernel: the sizes of
    the two minor-most dimensions, how many tiles there are, and how large one is.
    """

    def __init__(self, hidden: int):
        super().__init__()
        self.standardise = Standardise(TILE_FEATURES)
        self.bounds = nn.Linear(TILE_FEATURES, hidden)
        self.loop = nn.Sequential(nn.Linear(6, hidden), nn.ReLU(), nn.Linear(hidden, hidden))
        self.register_buffer("positions", torch.arange(6), persistent=False)

    def forward(self, config: Tensor, elements: Tensor) -> Tensor:
        """``elements`` f32 [B]: the logarithm of how many elements the kernel puts out."""
        kernel, output = symmetric_log(config[:, 7]), symmetric_log(config[:, 15])
        minor, next_minor = (symmetric_log(self._from_the_end(config[:, 8:14], k)) for k in (1, 2))
        loop = torch.stack(
            [minor, next_minor, kernel, output, kernel + output, elements - output], -1
        )
        return (self.bounds(self.standardise(config)) + self.loop(loop / 4)).unsqueeze(1)

    def _from_the_end(self, bounds: Tensor, k: int) -> Tensor:
        """The ``k``-th bound counted from the minor-most; slots are filled from the major side."""
        rank = (bounds > 0).sum(-1, keepdim=True)
        return (bounds * (self.positions == rank - k).to(bounds.dtype)).sum(-1)


class RootMeanSquareNorm(nn.Module):
    """Scales rows to unit root mean square; faster than LayerNorm in ONNX Runtime."""

    def __init__(self, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        square = (x * x).mean(-1, keepdim=True)
        return x * (1 / torch.sqrt(square + 1e-6)) * self.weight


class Sage(nn.Module):
    """GraphSAGE with means over operands and over users, and a residual."""

    def __init__(self, hidden: int, dropout: float):
        super().__init__()
        self.self_part = nn.Linear(hidden, hidden)
        self.operand_part = nn.Linear(hidden, hidden, bias=False)
        self.user_part = nn.Linear(hidden, hidden, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, h: Tensor, operands: Tensor, users: Tensor) -> Tensor:
        # Project first, then average: the same, and the products stay H wide.
        around = operands @ self.operand_part(h) + users @ self.user_part(h)
        return h + self.dropout(torch.relu(self.self_part(h) + around))


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
        h = h + self.dropout(self._attend(self.before_attention(h), hidden_keys))
        return h + self.dropout(self.dense(self.before_dense(h)))

    def _attend(self, h: Tensor, hidden_keys: Tensor) -> Tensor:
        parts = self.query_key_value(h).unflatten(-1, (3, self.heads, -1))
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        weights = query @ key.transpose(-1, -2) * (query.shape[-1] ** -0.5)
        mixed = torch.softmax(weights + hidden_keys, -1) @ value
        return self.output(mixed.transpose(1, 2).flatten(2))


class Encoder(nn.Module):
    """Rows of (segment, local configuration) to embeddings; see ``forward`` for shapes."""

    def __init__(self, settings: ModelSettings):
        super().__init__()
        hidden = settings.hidden
        self.settings = settings
        self.standardise = Standardise(FEATURES)
        self.hide = nn.Dropout(settings.feature_dropout)
        self.opcode = nn.Embedding(OPCODES, hidden)
        self.static = nn.Linear(FEATURES, hidden)
        self.configuration = (
            LayoutConfiguration(hidden) if settings.task == "layout" else TileConfiguration(hidden)
        )
        self.first = nn.Sequential(nn.ReLU(), nn.Linear(hidden, hidden))
        self.sages = nn.ModuleList(Sage(hidden, settings.dropout) for _ in range(2))
        self.attention = Attention(hidden, settings.heads, settings.dropout)
        self.norm = RootMeanSquareNorm(hidden)
        self.project = nn.Linear(hidden, settings.embedding)
        if settings.task == "layout":
            # Start near the plain count of moved elements and learn what one costs, where.
            nn.init.constant_(self.project.bias[: settings.embedding // 2], 0.5)

    def forward(
        self,
        opcode: Tensor,
        features: Tensor,
        operands: Tensor,
        mask: Tensor,
        segment: Tensor,
        config: Tensor,
    ) -> Tensor:
        """opcode i64 [S,N], features f32 [S,N,140], operands f32 [S,N,N], mask f32 [S,N],
        segment i64 [B], config i64 [B,N,18] or f32 [B,24] to embedding f32 [B,D]."""
        edges = operands * mask.unsqueeze(-1) * mask.unsqueeze(-2)
        static = self.static(self.hide(self.standardise(features)))
        static = static + self.opcode.weight[opcode.clamp(0, OPCODES - 1)]
        real = _rows(mask, segment).unsqueeze(-1)
        configured = self._configured(features, edges, mask, segment, config)
        h = self.first(_rows(static, segment) + configured) * real
        to_operands = _rows(_mean_weights(edges), segment)
        to_users = _rows(_mean_weights(edges.mT), segment)
        for sage in self.sages:
            h = sage(h, to_operands, to_users)
        hidden_keys = _rows((mask - 1) * 1e9, segment).unsqueeze(1).unsqueeze(1)
        h = self.norm(self.attention(h, hidden_keys))
        parts = torch.relu(self.project(h)) * real
        if self.settings.task == "layout":
            parts = parts * self._amounts(features, edges, segment, config)
        return parts.sum(1)

    def _amounts(self, features, edges, segment, config) -> Tensor:
        """[B, N, D]: half of the channels are costs per moved element, the others are free."""
        elements = _elements(features)
        output, operand = (_rows(e, segment) for e in (elements, _mean_weights(edges) @ elements))
        moved = _moved(_changed(config).to(features.dtype), output, operand)
        quarter = self.settings.embedding // 4
        free = torch.ones_like(moved)
        return torch.cat([moved, free], -1).repeat_interleave(quarter, -1)

    def _configured(self, features, edges, mask, segment, config) -> Tensor:
        if self.settings.task == "tile":
            return self.configuration(config, _rows(_output_elements(features, mask), segment))
        return self.configuration(config, _rows(_sizes(features, edges), segment))


def _rows(static: Tensor, segment: Tensor) -> Tensor:
    """[S, ...] to [B, ...]. Exports as Gather; plain indexing becomes the slower GatherND."""
    return torch.index_select(static, 0, segment)


def _mean_weights(edges: Tensor) -> Tensor:
    return edges / edges.sum(-1, keepdim=True).clamp(min=1)


def _output_elements(features: Tensor, mask: Tensor) -> Tensor:
    """[S]: the logarithm of the elements of the largest result of any computation.

    Every computation has a root; those of reductions are scalars.
    """
    return torch.log1p(_elements(features) * features[..., :1] * mask.unsqueeze(-1)).amax((1, 2))


def _elements(features: Tensor) -> Tensor:
    return features[..., _DIMENSIONS].clamp(min=1).prod(-1, keepdim=True)


def _sizes(features: Tensor, edges: Tensor) -> Tensor:
    """[S, N, 4]: how large a node's output and its operands together are, two ways each."""
    elements = _elements(features)
    both = torch.cat([elements, edges @ elements], -1)
    # The logarithm orders sizes, the root keeps sums of bytes comparable across nodes.
    return torch.cat([torch.log1p(both) / 8, (torch.sqrt(both) / 256).clamp(max=16)], -1)


class Head(nn.Module):
    """Summed embeddings f32 [C, D] to scores f32 [C]."""

    def __init__(self, settings: ModelSettings):
        super().__init__()
        width = settings.embedding
        self.linear = nn.Linear(width, 1, bias=False)
        self.bent = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, sum: Tensor) -> Tensor:
        return (self.linear(sum) + self.bent(symmetric_log(sum))).squeeze(-1)


class SegmentModel(nn.Module):
    """Encoder and head, trained together."""

    def __init__(self, settings: ModelSettings):
        super().__init__()
        self.encoder = Encoder(settings)
        self.head = Head(settings)
