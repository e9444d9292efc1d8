"""TGraph for tiles (2023 and 2024, section 2): kernels encoded once, tiles joined to their pool."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from hlorank_training.data.dataset import Graph
from hlorank_training.models.architectures.architecture import Architecture, Preset
from hlorank_training.models.architectures.tgraph_layers import LinearActNorm, SageBlock
from hlorank_training.models.graph_layers import look_up, mean_weights
from hlorank_training.models.loss import LossSettings
from hlorank_training.models.scaling import ZScore
from hlorank_training.models.segment_batch import OPCODES, SegmentBatch
from hlorank_training.models.segment_model import SegmentModel, node_rows, tile_rows
from hlorank_training.models.tile_encoder import TileEncoder, every_row, sum_of_nodes
from hlorank_training.models.tile_part import TILE_FEATURES
from hlorank_training.models.training_settings import TrainSettings

_NUMBERS = 134
"""Feature columns before those of the layout, which are embedded."""
_LAYOUT_COLUMNS, _VALUES, _LOWEST = 6, 8, -2
_ABSENT = -1e9
"""Replaces padding nodes in maxima."""


@dataclass(frozen=True)
class TGraphTileSettings:
    """Sizes of TGraph for tiles."""

    hidden: int = 256
    opcode: int = 16
    value: int = 4
    """Width of the embedding of a layout value."""
    dropout: float = 0.2
    task: str = "tile"


class TGraphTileEncoder(TileEncoder):
    """Encodes a kernel once, and each of its tiles with the kernel's mean and maximum."""

    def __init__(self, settings: TGraphTileSettings):
        super().__init__()
        hidden, width = settings.hidden, settings.hidden // 2
        self.features, self.tile = ZScore(_NUMBERS), ZScore(TILE_FEATURES)
        self.opcode = nn.Embedding(OPCODES, settings.opcode)
        self.value = nn.Embedding(_VALUES, settings.value)
        inputs = _NUMBERS + _LAYOUT_COLUMNS * settings.value + settings.opcode
        self.first = nn.ModuleList([LinearActNorm(inputs, width), LinearActNorm(hidden, width)])
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
        self.features.fit(node_rows(graphs)[:, :_NUMBERS])
        self.tile.fit(tile_rows(graphs))

    def embed(self, batch: SegmentBatch) -> Tensor:
        """Maps a batch to [B,H]."""
        tile = self.configuration(self.tile(batch.config))
        return self.joined(torch.cat([tile, every_row(batch, self.kernels(batch))], -1))

    def kernels(self, batch: SegmentBatch) -> Tensor:
        """Returns the maximum and the mean over each kernel's nodes: [S,2H]."""
        x = self._inputs(batch)
        for layer in self.first:
            x = layer(x, batch.mask)
        users = mean_weights(batch.edges.mT)
        for sage in self.sages:
            x = sage(x, users, batch.mask)
        mean = sum_of_nodes(x, batch.mask) / batch.mask.sum(-1, keepdim=True)
        absent = (1 - batch.mask).unsqueeze(-1) * _ABSENT
        return torch.cat([(x + absent).amax(1), mean], -1)

    def _inputs(self, batch: SegmentBatch) -> Tensor:
        numbers, layout = batch.features[..., :_NUMBERS], batch.features[..., _NUMBERS:]
        values = (layout - _LOWEST).to(torch.int64).clamp(0, _VALUES - 1)
        embedded = look_up(self.value.weight, values).flatten(2)
        opcode = look_up(self.opcode.weight, batch.opcode)
        return torch.cat([self.features(numbers), embedded, opcode], -1)


def _dense(inputs: int, outputs: int, dropout: float) -> tuple[nn.Module, ...]:
    return nn.Linear(inputs, outputs), nn.Dropout(dropout), nn.GELU()


class TGraphTile(SegmentModel):
    """TGraph's model for tiles."""

    architecture = "tgraph-tile"

    def __init__(self, settings: TGraphTileSettings):
        super().__init__()
        self.settings, self.embedding = settings, settings.hidden
        self.encoder = TGraphTileEncoder(settings)
        self.head = LinearHead(settings.hidden)

    def fit(self, graphs: Sequence[Graph]) -> None:
        """Computes the means and deviations of the training graphs."""
        self.encoder.fit(graphs)


class LinearHead(nn.Linear):
    """Maps embeddings [C,H] to scores [C]."""

    def __init__(self, width: int):
        super().__init__(width, 1)

    def forward(self, sum: Tensor) -> Tensor:
        return super().forward(sum).squeeze(-1)


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
