"""Singh 2021's network over the nodes of a kernel.

The paper's nodes are Halide's stages. Here they are HLO instructions: 140 features and an embedded
opcode instead of 320 features of the stage, and the tile instead of 94 features of the schedule.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from hlorank_research.papers.losses import PaperLoss
from hlorank_research.papers.tile_encoder import every_row
from hlorank_training.data.dataset import Graph
from hlorank_training.models.architecture import Architecture, Preset
from hlorank_training.models.graph_layers import Standardise, look_up
from hlorank_training.models.schedule_network import ScheduleNetwork, ScheduleSizes
from hlorank_training.models.segment_batch import FEATURES, OPCODES, SegmentBatch
from hlorank_training.models.segment_model import SegmentEncoder, SegmentModel, node_rows, tile_rows
from hlorank_training.models.tile_part import TILE_FEATURES
from hlorank_training.models.training_settings import TrainSettings


@dataclass(frozen=True)
class SinghSettings(ScheduleSizes):
    """Sizes of the model."""

    opcode: int = 16
    task: str = "tile"


class SinghEncoder(SegmentEncoder):
    """Encodes rows by their run time without the bias, so that an embedding has one channel."""

    def __init__(self, settings: SinghSettings):
        super().__init__()
        self.features = Standardise(FEATURES)
        self.tile = Standardise(TILE_FEATURES)
        self.opcode = nn.Embedding(OPCODES, settings.opcode)
        self.network = ScheduleNetwork((FEATURES + settings.opcode, TILE_FEATURES), settings)

    def fit(self, graphs: Sequence[Graph]) -> None:
        """Computes the statistics of the training graphs."""
        self.features.fit(node_rows(graphs))
        self.tile.fit(tile_rows(graphs))

    def embed(self, batch: SegmentBatch) -> Tensor:
        """Maps a batch to [B,1]."""
        edges = every_row(batch, batch.edges)
        mask = every_row(batch, batch.mask)
        return self.network(self._first(batch), edges, mask)

    def nodes(self, batch: SegmentBatch) -> Tensor:
        """Returns the nodes' vectors of every row after the last block: [B,N,H]."""
        edges = every_row(batch, batch.edges)
        mask = every_row(batch, batch.mask)
        return self.network.levels(self._first(batch), edges, mask)[-1]

    def _first(self, batch: SegmentBatch) -> Tensor:
        opcode = look_up(self.opcode.weight, batch.opcode)
        nodes = torch.cat([self.features(batch.features), opcode], -1)
        static = every_row(batch, self.network.invariant(nodes))
        tile = self.network.dependent(self.tile(batch.config)).unsqueeze(1)
        return torch.cat([static, tile.expand(-1, static.shape[1], -1)], -1)


class Bias(nn.Module):
    """Adds the bias of the run time to sums of embeddings [C,1]."""

    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, sum: Tensor) -> Tensor:
        return (sum + self.bias).squeeze(-1)


class SinghTile(SegmentModel):
    """The network for tiles; a score is a run time in milliseconds, which may be negative."""

    architecture = "singh-gcn"
    embedding = 1

    def __init__(self, settings: SinghSettings):
        super().__init__()
        self.settings = settings
        self.encoder = SinghEncoder(settings)
        self.head = Bias()


_TRAINING = TrainSettings(
    optimizer="adagrad",
    learning_rate=0.0075,
    decay=1.0,
    weight_decay=1e-4,
    clip=None,
    averaging=0.0,
    graphs_per_step=8,
    loss=PaperLoss("singh-relative"),
)
ARCHITECTURES = (
    Architecture(
        SinghTile.architecture,
        SinghTile,
        {
            "small": Preset(SinghSettings(invariant=48, dependent=16), _TRAINING),
            "paper": Preset(SinghSettings(), _TRAINING),
        },
    ),
)
