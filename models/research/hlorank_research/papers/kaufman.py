"""The model of Kaufman 2021 for tiles: a GNN or none, and one of four reductions (section 3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from hlorank_research.papers.kaufman_layers import (
    GraphAttention,
    Mean,
    NeighbourBlock,
    directions,
)
from hlorank_research.papers.kaufman_reductions import (
    ColumnWise,
    LastState,
    PerNode,
    TransformerSum,
    module_norm,
)
from hlorank_research.papers.kernel_costs import COSTS, KernelCosts
from hlorank_research.papers.scaling import MinMax
from hlorank_research.papers.tile_encoder import LinearHead, every_row
from hlorank_training.data.dataset import Graph
from hlorank_training.models.graph_layers import Standardise, look_up
from hlorank_training.models.segment_batch import FEATURES, OPCODES, SegmentBatch
from hlorank_training.models.segment_model import SegmentEncoder, SegmentModel, node_rows, tile_rows
from hlorank_training.models.tile_part import TILE_FEATURES


@dataclass(frozen=True)
class KaufmanSettings:
    """Parts and sizes; the rows of the paper's tables 3 to 7 are settings of it."""

    gnn: str
    """``none``, ``sage`` or ``gat``"""
    reduction: str
    """``per-node``, ``column-wise``, ``lstm`` or ``transformer``"""
    hidden: int = 64
    opcode: int = 32
    layers: int = 3
    """Layers of the GNN."""
    attention_heads: int = 4
    """Heads of ``gat``."""
    transformer_layers: int = 1
    module_layers: int = 0
    """Dense layers after the reduction, or for ``per-node`` at every node before it."""
    module_norm: bool = False
    """Whether the reduced vector is divided by its norm."""
    directed: bool = True
    """Whether operands and users have weights of their own."""
    costs: str = "nodes"
    """Where the static performance features are joined: ``nodes``, ``kernel`` or ``absent``."""
    tile: str = "nodes"
    """Where the tile is joined: ``nodes`` or ``kernel``."""
    scale: str = "minmax"
    """``minmax``, or ``log-standard`` for columns that span many orders of magnitude."""
    neighbours: int = 20
    """Maximum neighbours of a node in each direction: the lowest node numbers."""
    dropout: float = 0.1
    task: str = "tile"


class KernelFeatures(nn.Module):
    """The kernel's own features, scaled: the tile's and the costs', for nodes or for the kernel."""

    def __init__(self, settings: KaufmanSettings):
        super().__init__()
        scale = _SCALES[settings.scale]
        self.settings = settings
        self.tile = scale(TILE_FEATURES)
        self.costs = scale(COSTS)
        self.raw_costs = KernelCosts()

    def fit(self, graphs: Sequence[Graph]) -> None:
        """Computes the statistics of the training kernels."""
        self.tile.fit(tile_rows(graphs))
        segments = [segment for graph in graphs for segment in graph.segments]
        self.costs.fit(torch.cat([self.raw_costs.of_segment(segment) for segment in segments]))

    def forward(self, batch: SegmentBatch, place: str) -> Tensor:
        """Returns the features that are joined at ``nodes`` or at the ``kernel``: [B,F]."""
        parts = [batch.config[:, :0]]
        if self.settings.tile == place:
            parts.append(self.tile(batch.config))
        if self.settings.costs == place:
            parts.append(every_row(batch, self.costs(self.raw_costs(batch))))
        return torch.cat(parts, -1)

    def width(self, place: str) -> int:
        """Returns the number of features at a place."""
        tile = TILE_FEATURES if self.settings.tile == place else 0
        return tile + (COSTS if self.settings.costs == place else 0)


_SCALES = {"minmax": MinMax, "log-standard": Standardise}


class KaufmanEncoder(SegmentEncoder):
    """Encodes kernels with their tile; the embedding ends with the features of the kernel."""

    def __init__(self, settings: KaufmanSettings):
        super().__init__()
        hidden = settings.hidden
        self.settings = settings
        self.features = _SCALES[settings.scale](FEATURES)
        self.kernel = KernelFeatures(settings)
        self.opcode = nn.Embedding(OPCODES, settings.opcode)
        inputs = settings.opcode + FEATURES + self.kernel.width("nodes")
        self.first = nn.Linear(inputs, hidden, bias=False)
        blocks = 0 if settings.gnn == "none" else settings.layers
        self.blocks = nn.ModuleList(
            NeighbourBlock(hidden, _around(settings)) for _ in range(blocks)
        )
        self.last = _dense(hidden, hidden, 3, settings.dropout)
        self.reduction = _reduction(settings)
        per_node = settings.reduction == "per-node"
        width = hidden if per_node else self.reduction.width
        self.module_layers = _dense(width, hidden, settings.module_layers, 0.0)
        reduced = hidden if settings.module_layers else self.reduction.width
        self.width = reduced + self.kernel.width("kernel")

    def fit(self, graphs: Sequence[Graph]) -> None:
        """Computes the statistics of the training kernels."""
        self.features.fit(node_rows(graphs))
        self.kernel.fit(graphs)

    def embed(self, batch: SegmentBatch) -> Tensor:
        """Maps a batch to [B,width]."""
        h = self.last(self.nodes(batch))
        mask = every_row(batch, batch.mask)
        if self.settings.reduction == "per-node":
            kernel = self._normed(self.reduction(self.module_layers(h), mask))
        else:
            kernel = self.module_layers(self._normed(self.reduction(h, mask)))
        return torch.cat([kernel, self.kernel(batch, "kernel")], -1)

    def nodes(self, batch: SegmentBatch) -> Tensor:
        """Returns the nodes' vectors of every row after the GNN: [B,N,H]."""
        h = self._inputs(batch)
        edges = directions(batch.edges, self.settings.neighbours, self.settings.directed)
        edges = [every_row(batch, one) for one in edges]
        for block in self.blocks:
            h = block(h, edges)
        return h

    def _inputs(self, batch: SegmentBatch) -> Tensor:
        """Returns the first vectors; what is equal for all rows or all nodes is computed once."""
        opcode = look_up(self.opcode.weight, batch.opcode)
        static = torch.cat([opcode, self.features(batch.features)], -1)
        of_nodes, of_kernel = self.first.weight.tensor_split([static.shape[-1]], 1)
        row = self.kernel(batch, "nodes") @ of_kernel.T
        return torch.relu(every_row(batch, static @ of_nodes.T) + row.unsqueeze(1))

    def _normed(self, kernel: Tensor) -> Tensor:
        return module_norm(kernel) if self.settings.module_norm else kernel


def _around(settings: KaufmanSettings) -> list[nn.Module]:
    """Returns one module for each direction."""
    hidden = settings.hidden
    count = 2 if settings.directed else 1
    if settings.gnn == "gat":
        return [GraphAttention(hidden, settings.attention_heads) for _ in range(count)]
    return [Mean(hidden) for _ in range(count)]


def _reduction(settings: KaufmanSettings) -> nn.Module:
    if settings.reduction == "transformer":
        return TransformerSum(settings.hidden, settings.transformer_layers)
    simple = {"per-node": PerNode, "column-wise": ColumnWise, "lstm": LastState}
    return simple[settings.reduction](settings.hidden)


def _dense(inputs: int, hidden: int, layers: int, dropout: float) -> nn.Sequential:
    widths = [inputs] + [hidden] * layers
    parts: list[nn.Module] = []
    for width, following in pairwise(widths):
        parts += [nn.Linear(width, following, bias=False), nn.ReLU(), nn.Dropout(dropout)]
    return nn.Sequential(*parts)


class Kaufman(SegmentModel):
    """One of the twelve models of tables 4, 6 and 7."""

    def __init__(self, settings: KaufmanSettings):
        super().__init__()
        self.settings = settings
        self.encoder = KaufmanEncoder(settings)
        self.embedding = self.encoder.width
        self.head = LinearHead(self.embedding, bias=False)

    @property
    def architecture(self) -> str:
        """Name in the registry and in manifests."""
        return f"kaufman-{self.settings.gnn}-{self.settings.reduction}"
