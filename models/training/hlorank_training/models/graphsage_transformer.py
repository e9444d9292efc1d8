"""The GraphSAGE + Transformer segment model: an encoder per row and a head per configuration."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hlorank_training.data.dataset import Graph, read_graph_with_loops
from hlorank_training.data.featurize import WITH_LOOPS
from hlorank_training.data.prepare import Form
from hlorank_training.models.architecture import Architecture, Preset
from hlorank_training.models.graph_layers import (
    Attention,
    RootMeanSquareNorm,
    Sage,
    Standardise,
    hidden_keys,
    look_up,
    neighbour_weights,
    symmetric_log,
)
from hlorank_training.models.layout_part import AMOUNTS, LayoutPart, separate_entries
from hlorank_training.models.loop_part import LOOP_CHANNELS, LoopPart
from hlorank_training.models.segment_model import (
    FEATURES,
    LOOP_FEATURES,
    OPCODES,
    TILE_FEATURES,
    SegmentBatch,
    SegmentModel,
    SplitEncoder,
    node_rows,
    tile_rows,
)
from hlorank_training.models.tile_part import TilePart
from hlorank_training.models.training_settings import LossSettings, TrainSettings
from hlorank_training.models.vector_part import VectorTilePart

_AMOUNT_SHARES = {"layout": 12, "tile": 4}
"""Each amount has one of this many embedding channels as its cost."""


@dataclass(frozen=True)
class ModelSettings:
    """Sizes and parts of the model."""

    task: str
    """``layout`` or ``tile``"""
    hidden: int = 64
    """Width of what depends on the segment alone."""
    joined: int = 64
    """Width from where the configuration joins."""
    embedding: int = 64
    heads: int = 4
    dropout: float = 0.1
    feature_dropout: float = 0.0
    """Share of node features and of single layout choices that training hides, so that the model
    does not memorize single graphs and choices."""
    attention: bool = True
    """The Transformer layer; without it the model is GraphSAGE alone."""
    vectors: bool = False
    """Tiles only: whether tiles have two levels, whose input bounds are vectors."""
    loops: bool = False
    """Tiles only: whether the columns of loops follow the features of a tile."""


class Encoder(SplitEncoder):
    """Encodes rows of (segment, local configuration).

    The GraphSAGE and Transformer layers see the segment alone, so they run once for all its rows.
    What a configuration adds to every node joins their result, and two layers follow.
    """

    def __init__(self, settings: ModelSettings):
        super().__init__()
        hidden = settings.hidden
        joined = settings.joined
        self.settings = settings
        self.standardise = Standardise(FEATURES)
        self.hide = nn.Dropout(settings.feature_dropout)
        self.opcode = nn.Embedding(OPCODES, hidden)
        self.static = nn.Linear(FEATURES, hidden)
        self.first = nn.Sequential(nn.ReLU(), nn.Linear(hidden, hidden))
        self.sages = nn.ModuleList(Sage(hidden, settings.dropout) for _ in range(2))
        self.attention = (
            Attention(hidden, settings.heads, settings.dropout) if settings.attention else None
        )
        self.static_norm = RootMeanSquareNorm(hidden)
        self.around = nn.Linear(hidden, joined, bias=False)
        self.own = nn.Linear(hidden, joined)
        if settings.task == "layout":
            self.configuration = LayoutPart(joined, settings.feature_dropout)
        else:
            self.configuration = (VectorTilePart if settings.vectors else TilePart)(joined)
        self.loops = LoopPart(joined) if settings.loops else None
        self.tensors = ("nodes", *self.configuration.Tensors._fields)
        self.dense = nn.Linear(joined, joined)
        self.norm = RootMeanSquareNorm(joined)
        self.project = nn.Linear(joined, settings.embedding)
        shares = _AMOUNT_SHARES[settings.task] * (2 if settings.vectors else 1)
        self.amount_channels = settings.embedding // shares
        if settings.task == "layout":
            # The initial cost is about the number of moved elements; training refines it.
            nn.init.constant_(self.project.bias[: AMOUNTS * self.amount_channels], 0.5)

    def fit(self, graphs: Sequence[Graph]) -> None:
        """Computes the statistics of the standardization."""
        self.standardise.fit(node_rows(graphs))
        if self.settings.task == "tile":
            tiles = tile_rows(graphs)
            self.configuration.fit(tiles[:, :TILE_FEATURES])
            if self.loops is not None:
                self.loops.fit(tiles[:, TILE_FEATURES:])

    def of_segments(self, batch: SegmentBatch) -> tuple[Tensor, ...]:
        own = self.static(self.hide(self.standardise(batch.features)))
        own = own + look_up(self.opcode.weight, batch.opcode)
        # Nodes are flattened to [S*N,H]: ONNX Runtime is fastest at two-dimensional products.
        h = self.first(own.flatten(0, 1))
        neighbours = neighbour_weights(batch.edges)
        for sage in self.sages:
            h = sage(h, neighbours)
        if self.attention is not None:
            h = self.attention(h, hidden_keys(batch.mask))
        around = self.static_norm(h).view_as(own)
        part, added = self.configuration.of_segments(batch)
        return (self.own(own) + self.around(around) + added, *part)

    def of_rows(self, tensors: tuple[Tensor, ...], *configuration: Tensor) -> Tensor:
        nodes, *part = tensors
        of_segments = self.configuration.Tensors(*part)
        added = None
        if self.settings.task == "layout":
            joined, weights = self.configuration(of_segments, nodes, *configuration)
        elif self.loops is None:
            joined, weights = self.configuration(of_segments, nodes, *configuration, 0.0)
        else:
            tile, columns = configuration[0].split([TILE_FEATURES, LOOP_FEATURES], -1)
            of_loops, added = self.loops(columns)
            joined, weights = self.configuration(of_segments, nodes, tile, of_loops)
        h = torch.relu(joined)
        h = h + torch.relu(self.dense(h))
        parts = torch.relu(self.project(self.norm(h)))
        pooled = self._pool(parts.view(-1, nodes.shape[1], parts.shape[-1]), weights)
        return pooled if added is None else torch.cat([pooled, added], -1)

    def configuration_inputs(self, config: Tensor) -> tuple[Tensor, ...]:
        return separate_entries(config) if self.settings.task == "layout" else (config,)

    def _pool(self, parts: Tensor, weights: Tensor) -> Tensor:
        """Sums ``parts`` [B,N,D] over the nodes to [B,D]. Some channels are the cost of each amount
        in ``weights`` [B,A+1,N]; the other channels use the last weight, which is 1."""
        amount = torch.arange(self.settings.embedding, device=parts.device) // self.amount_channels
        amount = amount.clamp(max=weights.shape[1] - 1)
        chosen = F.one_hot(amount, weights.shape[1]).to(parts.dtype).mT
        # Nothing is negative, so the maximum is the chosen sum. ONNX Runtime is slow at a sum here.
        return ((weights @ parts) * chosen).amax(1)


class Head(nn.Module):
    """Maps summed embeddings f32 [C, D] to scores f32 [C]."""

    def __init__(self, width: int, logarithm: Callable[[Tensor], Tensor]):
        super().__init__()
        self.logarithm = logarithm
        self.linear = nn.Linear(width, 1, bias=False)
        self.bent = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, sum: Tensor) -> Tensor:
        return (self.linear(sum) + self.bent(self.logarithm(sum))).squeeze(-1)


class MemberHead(nn.Module):
    """Maps summed embeddings f32 [C, D], whose last channel is the score of a member, to scores.

    The scores are f32 [C], the means of the network's and of the member's; in training they are
    f32 [C, 2], since both learn on their own.
    """

    def __init__(self, width: int):
        super().__init__()
        self.network = Head(width - 1, symmetric_log)

    def forward(self, sum: Tensor) -> Tensor:
        scores = torch.stack([self.network(sum[:, :-1]), sum[:, -1]], -1)
        return scores if self.training else scores.mean(-1)


class GraphSageTransformer(SegmentModel):
    """Encoder and head, trained together."""

    def __init__(self, settings: ModelSettings):
        width = settings.embedding + (LOOP_CHANNELS if settings.loops else 0)
        encoder = Encoder(settings)
        # Channels of loops may be negative, and no others are.
        head = MemberHead(width) if settings.loops else Head(width, torch.log1p)
        super().__init__(settings, width, encoder, head)

    @classmethod
    def form(cls, settings: ModelSettings) -> Form:
        return Form(read_graph_with_loops, feature_set=WITH_LOOPS) if settings.loops else Form()

    @classmethod
    def for_graphs(cls, settings: ModelSettings, graphs: Sequence[Graph]) -> Self:
        """Recognizes tiles of two levels by their input bounds."""
        return super().for_graphs(replace(settings, vectors=has_vectors(graphs)), graphs)

    @property
    def architecture(self) -> str:
        """Name in the registry and in manifests."""
        return _WITH_ATTENTION if self.settings.attention else _WITHOUT_ATTENTION


def has_vectors(graphs: Sequence[Graph]) -> bool:
    """Returns whether the tiles of graphs have input bounds, which are vectors."""
    local = graphs[0].segments[0].local
    return local.ndim == 2 and bool(local[:, 16:22].any())


_WITH_ATTENTION = "graphsage-transformer-segment"
_WITHOUT_ATTENTION = "graphsage-segment"
_PRESETS = (
    # There are few graphs: dropout of features and units raised tau on left-out graphs. Layouts
    # differ by a few per cent, and their graphs have many segments. Validation is best after a few
    # epochs, and better if the learning rate falls soon.
    Preset(
        ModelSettings("layout", embedding=48, dropout=0.2, feature_dropout=0.3),
        TrainSettings(epochs=16, loss=LossSettings(noise=0.005, full_weight=0.05)),
    ),
    # Tiles differ by factors, and kernels are small, so that many fit into a step.
    Preset(
        ModelSettings(
            "tile", joined=48, embedding=48, dropout=0.3, feature_dropout=0.2, loops=True
        ),
        TrainSettings(
            epochs=60,
            minutes=60,
            learning_rate=2e-3,
            graphs_per_step=8,
            loss=LossSettings(noise=0.02, full_weight=0.2),
        ),
    ),
)


def _without_attention(preset: Preset) -> Preset:
    return replace(preset, model=replace(preset.model, attention=False))


ARCHITECTURES = (
    *(Architecture(_WITH_ATTENTION, GraphSageTransformer, {"small": p}) for p in _PRESETS),
    *(
        Architecture(_WITHOUT_ATTENTION, GraphSageTransformer, {"small": _without_attention(p)})
        for p in _PRESETS
    ),
)
