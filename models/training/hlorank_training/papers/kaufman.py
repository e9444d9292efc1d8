"""Kaufman 2021 for tiles: GraphSAGE and the Transformer reduction (section 3), without biases."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hlorank_training.data.dataset import Graph
from hlorank_training.models.architecture import Architecture, Preset
from hlorank_training.models.graph_layers import (
    Standardise,
    absent,
    look_up,
    mean_weights,
    sum_of_nodes,
)
from hlorank_training.models.segment_model import (
    FEATURES,
    OPCODES,
    TILE_FEATURES,
    SegmentBatch,
    SegmentEncoder,
    SegmentModel,
    node_rows,
    tile_rows,
)
from hlorank_training.models.training_settings import LossSettings, TrainSettings
from hlorank_training.papers.kernel_costs import COSTS, KernelCosts
from hlorank_training.papers.tile_encoder import LinearHead, MinMax, every_row

_HEADS = 4
_SCALES = {"minmax": MinMax, "log-standard": Standardise}


@dataclass(frozen=True)
class KaufmanSettings:
    """Sizes, and how features are scaled."""

    hidden: int = 64
    opcode: int = 32
    layers: int = 3
    """Layers of GraphSAGE."""
    transformer_layers: int = 1
    costs: bool = True
    """Whether nodes see the static performance features of their kernel."""
    scale: str = "minmax"
    """``minmax``, or ``log-standard`` for columns that span many orders of magnitude."""
    neighbours: int = 20
    """Maximum neighbours of a node in each direction: the lowest node numbers."""
    dropout: float = 0.1
    task: str = "tile"


def directions(edges: Tensor, neighbours: int) -> list[Tensor]:
    """Returns the first ``neighbours`` operands and users of every node: [B,N,N] each."""
    return [one * (one.cumsum(-1) <= neighbours).to(one.dtype) for one in (edges, edges.mT)]


class NeighbourBlock(nn.Module):
    """Joins a node with the means over its operands and over its users; rows have norm 1."""

    def __init__(self, hidden: int):
        super().__init__()
        self.around = nn.ModuleList(nn.Linear(hidden, hidden, bias=False) for _ in range(2))
        self.join = nn.Linear(3 * hidden, hidden, bias=False)

    def forward(self, h: Tensor, edges: list[Tensor]) -> Tensor:
        """Maps h [B,N,H] and the edges of both directions [B,N,N] to [B,N,H]."""
        parts = zip(self.around, edges, strict=True)
        terms = [mean_weights(one) @ torch.relu(dense(h)) for dense, one in parts]
        return F.normalize(torch.relu(self.join(torch.cat([h, *terms], -1))), dim=-1)


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
        heads = (part.unflatten(-1, (_HEADS, -1)).transpose(1, 2) for part in parts)
        query, key, value = heads
        scores = query @ key.mT / query.shape[-1] ** 0.5 + hidden_keys
        mixed = (torch.softmax(scores, -1) @ value).transpose(1, 2).flatten(2)
        h = self.after_attention(h + self.output(mixed))
        return self.after_dense(h + self.dense(h))


class KaufmanEncoder(SegmentEncoder):
    """Encodes kernels, of which every node sees the tile and the costs of the kernel."""

    def __init__(self, settings: KaufmanSettings):
        super().__init__()
        hidden = settings.hidden
        scale = _SCALES[settings.scale]
        self.settings = settings
        self.features = scale(FEATURES)
        self.tile = scale(TILE_FEATURES)
        self.costs = scale(COSTS)
        self.raw_costs = KernelCosts()
        self.opcode = nn.Embedding(OPCODES, settings.opcode)
        of_kernel = TILE_FEATURES + (COSTS if settings.costs else 0)
        self.first = nn.Linear(settings.opcode + FEATURES + of_kernel, hidden, bias=False)
        self.blocks = nn.ModuleList(NeighbourBlock(hidden) for _ in range(settings.layers))
        dense: list[nn.Module] = []
        for width, following in pairwise([hidden] * 4):
            dense += [nn.Linear(width, following, bias=False), nn.ReLU()]
            dense.append(nn.Dropout(settings.dropout))
        self.last = nn.Sequential(*dense)
        self.transformer = nn.ModuleList(
            TransformerLayer(hidden) for _ in range(settings.transformer_layers)
        )

    def fit(self, graphs: Sequence[Graph]) -> None:
        """Computes the statistics of the training kernels."""
        self.features.fit(node_rows(graphs))
        self.tile.fit(tile_rows(graphs))
        segments = [segment for graph in graphs for segment in graph.segments]
        self.costs.fit(torch.cat([self.raw_costs.of_segment(segment) for segment in segments]))

    def embed(self, batch: SegmentBatch) -> Tensor:
        """Maps a batch to [B,H]."""
        h = self.last(self.nodes(batch))
        mask = every_row(batch, batch.mask)
        hidden_keys = absent(mask)[:, None, None]
        for layer in self.transformer:
            h = layer(h, hidden_keys)
        return sum_of_nodes(h, mask)

    def nodes(self, batch: SegmentBatch) -> Tensor:
        """Returns the nodes' vectors of every row after GraphSAGE: [B,N,H]."""
        h = self._inputs(batch)
        both = directions(batch.edges, self.settings.neighbours)
        edges = [every_row(batch, one) for one in both]
        for block in self.blocks:
            h = block(h, edges)
        return h

    def _inputs(self, batch: SegmentBatch) -> Tensor:
        """Returns the first vectors; what is equal for all rows or all nodes is computed once."""
        opcode = look_up(self.opcode.weight, batch.opcode)
        static = torch.cat([opcode, self.features(batch.features)], -1)
        of_nodes, of_kernel = self.first.weight.tensor_split([static.shape[-1]], 1)
        kernel = self.tile(batch.config)
        if self.settings.costs:
            costs = every_row(batch, self.costs(self.raw_costs(batch)))
            kernel = torch.cat([kernel, costs], -1)
        row = kernel @ of_kernel.T
        return torch.relu(every_row(batch, static @ of_nodes.T) + row.unsqueeze(1))


class Kaufman(SegmentModel):
    """The model of tables 4, 6 and 7 that ranks tiles best."""

    architecture = "kaufman-sage-transformer"

    def __init__(self, settings: KaufmanSettings):
        hidden = settings.hidden
        super().__init__(settings, hidden, KaufmanEncoder(settings), LinearHead(hidden, bias=False))


_LOSS = LossSettings("kaufman-hinge")
_PRESETS = {
    "small": Preset(
        KaufmanSettings(scale="log-standard"),
        TrainSettings(graphs_per_step=8, configurations_per_graph=16, loss=_LOSS),
    ),
    # The paper does not say which maximum norm the gradient has.
    "paper": Preset(
        KaufmanSettings(hidden=1024, opcode=256),
        TrainSettings(
            epochs=1000,
            minutes=7 * 24 * 60,
            optimizer="adam",
            learning_rate=4.66e-4,
            decay=1.0,
            weight_decay=0.0,
            clip=1.0,
            averaging=0.0,
            graphs_per_step=8,
            configurations_per_graph=16,
            even_families=True,
            patience=1000,
            loss=_LOSS,
        ),
    ),
}
ARCHITECTURES = (Architecture(Kaufman.architecture, Kaufman, _PRESETS),)
