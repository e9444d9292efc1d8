"""A small whole-graph model for the server's tests: GraphSAGE over all nodes, optionally with
attention across configurations."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from hlorank_training.data.whole_graph import WholeGraph
from hlorank_training.models.graph_layers import Standardise
from hlorank_training.models.layout_part import SLOTS
from hlorank_training.models.segment_batch import FEATURES, OPCODES
from hlorank_training.models.serving_rule import ServingRule
from hlorank_training.models.tile_part import TILE_FEATURES
from hlorank_training.models.whole_graph_layers import CrossConfigurationAttention, mean_over
from hlorank_training.models.whole_graph_model import WholeGraphModel, node_rows

LAYOUT_VALUES = 7
"""-1 for the default, and the dimensions 0 to 5."""
_VALUE_WIDTH = 4


@dataclass(frozen=True)
class EarlyJoinSettings:
    """Sizes and parts of the model."""

    task: str
    """``layout`` or ``tile``"""
    hidden: int = 8
    layers: int = 2
    cross_configuration: bool = False
    """TGraph's attention across configurations; scores then depend on the other configurations of
    the chunk."""


class EarlyJoin(WholeGraphModel):
    """Scores configurations of a graph with TpuGraphs' early join.

    Node features and the configuration are joined before the first layer, at every node for a
    tile and at the configurable nodes for a layout.
    """

    rule = ServingRule(chunk_configs=5)

    def __init__(self, settings: EarlyJoinSettings):
        super().__init__()
        hidden, layout = settings.hidden, settings.task == "layout"
        self.settings, self.batch_dependent = settings, settings.cross_configuration
        self.standardise = Standardise(FEATURES)
        cross = settings.cross_configuration
        self.architecture = f"graphsage-{'cross-configuration' if cross else 'early-join'}"
        self.opcode = nn.Embedding(OPCODES, hidden)
        self.static = nn.Linear(FEATURES, hidden)
        self.configuration = LayoutJoin() if layout else TileJoin()
        self.first = nn.Linear(hidden + self.configuration.width, hidden)
        self.blocks = nn.ModuleList(Block(hidden, cross) for _ in range(settings.layers))
        self.head = nn.Linear(hidden, 1)

    def fit(self, graphs: Sequence[WholeGraph]) -> None:
        """Computes the means and deviations of the graphs."""
        self.standardise.fit(node_rows(graphs))
        if self.settings.task == "tile":
            tiles = np.concatenate([graph.config for graph in graphs])
            self.configuration.standardise.fit(torch.from_numpy(tiles))

    def forward(self, opcode, features, edges, configuration: tuple[Tensor, ...]) -> Tensor:
        """Maps opcode i64 [N], features f32 [N,140], edges i64 [2,E] (consumers, producers) and
        the inputs of ``LayoutJoin`` or ``TileJoin`` to scores f32 [C]."""
        static = self.static(self.standardise(features)) + self.opcode(opcode)
        configured = self.configuration(opcode.shape[0], *configuration)
        nodes = static.expand(configured.shape[0], -1, -1)
        h = torch.relu(self.first(torch.cat([nodes, configured], -1)))
        for block in self.blocks:
            h = block(h, edges)
        return self.head(h.sum(1)).squeeze(-1)


class LayoutJoin(nn.Module):
    """Joins layouts at their nodes, and 0 elsewhere; every value is embedded, as in TGraph."""

    width = SLOTS * _VALUE_WIDTH

    def __init__(self):
        super().__init__()
        self.value = nn.Embedding(LAYOUT_VALUES, _VALUE_WIDTH)

    def forward(self, nodes: int, configurable: Tensor, config: Tensor) -> Tensor:
        """Maps configurable i64 [K] and config i64 [C,K,18] to [C,N,72]."""
        values = self.value(config + 1).flatten(2)
        nothing = values.new_zeros(config.shape[0], nodes, self.width)
        return nothing.index_add(1, configurable, values)


class TileJoin(nn.Module):
    """Joins the tile at every node."""

    width = TILE_FEATURES

    def __init__(self):
        super().__init__()
        self.standardise = Standardise(TILE_FEATURES)

    def forward(self, nodes: int, config: Tensor) -> Tensor:
        """Maps config f32 [C,24] to [C,N,24]."""
        return self.standardise(config).unsqueeze(1).expand(-1, nodes, -1)


class Block(nn.Module):
    """GraphSAGE with means over operands and over users, and a residual connection."""

    def __init__(self, hidden: int, cross_configuration: bool):
        super().__init__()
        # Attention doubles the channels, so TGraph halves them before it.
        width = hidden // 2 if cross_configuration else hidden
        self.self_part = nn.Linear(hidden, width)
        self.operands = nn.Linear(hidden, width, bias=False)
        self.users = nn.Linear(hidden, width, bias=False)
        self.cross = CrossConfigurationAttention() if cross_configuration else nn.Identity()

    def forward(self, h: Tensor, edges: Tensor) -> Tensor:
        """Maps h [C,N,H] and edges [2,E] to [C,N,H]."""
        consumers, producers = edges[0], edges[1]
        out = self.self_part(h)
        out = out + self.operands(mean_over(h, consumers, producers))
        out = out + self.users(mean_over(h, producers, consumers))
        return h + torch.relu(self.cross(out))
