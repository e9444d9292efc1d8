"""TpuGraphs' GraphSAGE for tiles (2023, appendix B), with the tile joined at every node."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hlorank_training.data.dataset import Graph
from hlorank_training.models.architecture import Architecture, Preset
from hlorank_training.models.graph_layers import look_up, sum_of_nodes
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
from hlorank_training.papers.tile_encoder import LinearHead, MinMax, every_row

_SLOPE = 0.2


@dataclass(frozen=True)
class TileSettings:
    """Sizes of the model."""

    opcode: int
    """Width of the opcode embedding."""
    hidden: int = 64
    layers: int = 3
    task: str = "tile"


class SumSage(nn.Module):
    """Sums over operands and users, without a self loop; every node's row has norm 1."""

    def __init__(self, inputs: int, hidden: int):
        super().__init__()
        self.linear = nn.Linear(2 * inputs, hidden)

    def forward(self, x: Tensor, around: Tensor) -> Tensor:
        """Maps x [B,N,F] and edges of both directions [B,N,N] to [B,N,H]."""
        joined = self.linear(torch.cat([around @ x, x], -1))
        return F.normalize(F.leaky_relu(joined, _SLOPE), dim=-1, eps=1e-6)


class TileSageEncoder(SegmentEncoder):
    """Encodes rows by SAGE layers and a sum over nodes."""

    def __init__(self, settings: TileSettings):
        super().__init__()
        self.features = MinMax(FEATURES)
        self.tile = MinMax(TILE_FEATURES)
        self.opcode = nn.Embedding(OPCODES, settings.opcode)
        inputs = TILE_FEATURES + settings.opcode + FEATURES
        widths = [inputs] + [settings.hidden] * settings.layers
        self.sages = nn.ModuleList(map(SumSage, widths, widths[1:]))

    def fit(self, graphs: Sequence[Graph]) -> None:
        """Computes the minima and maxima of the training graphs."""
        self.features.fit(node_rows(graphs))
        self.tile.fit(tile_rows(graphs))

    def embed(self, batch: SegmentBatch) -> Tensor:
        """Maps a batch to [B,H]."""
        return sum_of_nodes(self.nodes(batch), every_row(batch, batch.mask))

    def nodes(self, batch: SegmentBatch) -> Tensor:
        """Returns the nodes' vectors of every row after the last layer: [B,N,H]."""
        edges = every_row(batch, batch.edges)
        opcode = look_up(self.opcode.weight, batch.opcode)
        static = every_row(batch, torch.cat([opcode, self.features(batch.features)], -1))
        tile = self.tile(batch.config).unsqueeze(1).expand(-1, static.shape[1], -1)
        x = torch.cat([tile, static], -1)
        around = edges + edges.mT
        for sage in self.sages:
            x = sage(x, around)
        return x


class Readout(nn.Module):
    """Maps embeddings f32 [C,D] to scores f32 [C] by two hidden layers."""

    def __init__(self, width: int):
        super().__init__()
        self.hidden = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.last = LinearHead(width)

    def forward(self, sum: Tensor) -> Tensor:
        """Maps [C,D] to [C]."""
        for layer in self.hidden:
            sum = F.leaky_relu(layer(sum), _SLOPE)
        return self.last(sum)


class TileSage(SegmentModel):
    """EarlyJoinSAGE."""

    architecture = "tpugraphs-early-sage"

    def __init__(self, settings: TileSettings):
        hidden = settings.hidden
        super().__init__(settings, hidden, TileSageEncoder(settings), Readout(hidden))


_LOSS = LossSettings("tpugraphs-list-mle", temperature=10)
_PRESETS = {
    "small": Preset(
        TileSettings(opcode=32),
        TrainSettings(learning_rate=2e-3, graphs_per_step=8, weight_decay=2e-4, loss=_LOSS),
    ),
    "paper": Preset(
        TileSettings(opcode=64),
        TrainSettings(
            epochs=100,
            minutes=24 * 60,
            optimizer="adam",
            decay=1.0,
            # The paper adds 1e-4 of the squared weights to the loss, whose gradient is twice that.
            weight_decay=2e-4,
            clip=100.0,
            averaging=0.0,
            graphs_per_step=10,
            configurations_per_graph=10,
            patience=100,
            loss=_LOSS,
        ),
    ),
}
ARCHITECTURES = (Architecture(TileSage.architecture, TileSage, _PRESETS),)
