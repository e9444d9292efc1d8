"""TGraph for tiles (2023 and 2024, section 2): kernels encoded once, tiles joined to their pool."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from hlorank_training.data.dataset import Graph
from hlorank_training.models.architecture import Architecture, Preset
from hlorank_training.models.graph_layers import mean_weights
from hlorank_training.models.segment_model import (
    TILE_FEATURES,
    SegmentBatch,
    SegmentEncoder,
    SegmentModel,
    node_rows,
    tile_rows,
)
from hlorank_training.models.training_settings import LossSettings, TrainSettings
from hlorank_training.papers.tgraph_layers import (
    Attentions,
    Dense,
    NodeInputs,
    Nodes,
    SageBlock,
    first_linear,
    instance_norm,
)
from hlorank_training.papers.tile_encoder import (
    LinearHead,
    ZScore,
    every_row,
    max_of_nodes,
    mean_of_nodes,
)


@dataclass(frozen=True)
class TGraphTileSettings:
    """Sizes of TGraph for tiles."""

    hidden: int = 256
    opcode: int = 16
    value: int = 4
    """Width of the embedding of a layout value."""
    dropout: float = 0.2
    task: str = "tile"


class TGraphTileEncoder(SegmentEncoder):
    """Encodes a kernel once, and each of its tiles with the kernel's mean and maximum."""

    def __init__(self, settings: TGraphTileSettings):
        super().__init__()
        hidden = settings.hidden
        attentions = Attentions()
        self.inputs = NodeInputs(settings.opcode, settings.value)
        self.tile = ZScore(TILE_FEATURES)
        self.first = nn.ModuleList(
            Dense(first_linear(width, attentions.inner(hidden)), hidden, attentions)
            for width in (self.inputs.width, hidden)
        )
        self.sages = nn.ModuleList(SageBlock(hidden, settings.dropout) for _ in range(2))
        self.configuration = nn.Sequential(
            nn.Linear(TILE_FEATURES, hidden),
            nn.Dropout(settings.dropout),
            nn.GELU(),
            nn.Linear(hidden, hidden),
        )
        self.joined = nn.Sequential(
            *_dense(3 * hidden, hidden, settings.dropout), *_dense(hidden, hidden, settings.dropout)
        )

    def fit(self, graphs: Sequence[Graph]) -> None:
        """Computes the means and deviations of the training graphs."""
        self.inputs.fit(node_rows(graphs))
        self.tile.fit(tile_rows(graphs))

    def embed(self, batch: SegmentBatch) -> Tensor:
        """Maps a batch to [B,H]."""
        tile = self.configuration(self.tile(batch.config))
        return self.joined(torch.cat([tile, every_row(batch, self.kernels(batch))], -1))

    def kernels(self, batch: SegmentBatch) -> Tensor:
        """Returns the maximum and the mean over each kernel's nodes: [S,2H]."""
        x = self.inputs(batch.opcode, batch.features)
        users = mean_weights(batch.edges.mT)
        nodes = Nodes(partial(instance_norm, mask=batch.mask), partial(torch.matmul, users))
        for layer in self.first:
            x = layer(nodes, x)
        for sage in self.sages:
            x = sage(x, nodes)
        return torch.cat([max_of_nodes(x, batch.mask), mean_of_nodes(x, batch.mask)], -1)


def _dense(inputs: int, outputs: int, dropout: float) -> tuple[nn.Module, ...]:
    return nn.Linear(inputs, outputs), nn.Dropout(dropout), nn.GELU()


class TGraphTile(SegmentModel):
    """TGraph's model for tiles."""

    architecture = "tgraph-tile"

    def __init__(self, settings: TGraphTileSettings):
        hidden = settings.hidden
        super().__init__(settings, hidden, TGraphTileEncoder(settings), LinearHead(hidden))


_LOSS = LossSettings("tgraph-hinge-mean")
_EVERY_TILE = 4096
_PRESETS = {
    "small": Preset(
        TGraphTileSettings(hidden=64),
        TrainSettings(
            learning_rate=2e-3, graphs_per_step=8, weight_decay=1e-5, warm_up=0.05, loss=_LOSS
        ),
    ),
    "paper": Preset(
        TGraphTileSettings(),
        TrainSettings(
            epochs=18,
            minutes=24 * 60,
            warm_up=0.05,
            weight_decay=1e-5,
            averaging=0.0,
            graphs_per_step=1,
            configurations_per_graph=_EVERY_TILE,
            patience=18,
            loss=_LOSS,
        ),
    ),
}
ARCHITECTURES = (Architecture(TGraphTile.architecture, TGraphTile, _PRESETS),)
