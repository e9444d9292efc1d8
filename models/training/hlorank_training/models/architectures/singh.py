"""Graph convolutions over the nodes of a kernel, after Singh 2021, sections II to IV.

The paper's nodes are Halide's stages. Here they are HLO instructions: 140 features and an embedded
opcode instead of 320 features of the stage, and the tile instead of 94 features of the schedule.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from hlorank_training.data.dataset import Graph
from hlorank_training.models.architectures.architecture import Architecture, Preset
from hlorank_training.models.graph_layers import Standardise, look_up, mean_weights_with_self
from hlorank_training.models.loss import LossSettings
from hlorank_training.models.segment_batch import FEATURES, OPCODES, SegmentBatch
from hlorank_training.models.segment_model import SegmentEncoder, SegmentModel, node_rows, tile_rows
from hlorank_training.models.tile_encoder import every_row, sum_of_nodes
from hlorank_training.models.tile_part import TILE_FEATURES
from hlorank_training.models.training_settings import TrainSettings


@dataclass(frozen=True)
class SinghSettings:
    """Sizes of the network."""

    invariant: int = 220
    """Width that the features of a node have, without the schedule."""
    dependent: int = 60
    """Width that the tile has at a node."""
    blocks: int = 2
    opcode: int = 16
    directed: bool = False
    """Whether a node averages its operands alone, instead of operands and users."""
    task: str = "tile"


def averages(edges: Tensor, directed: bool) -> Tensor:
    """Maps edges [B,N,N] to weights whose rows average a node and its neighbours."""
    return mean_weights_with_self(edges if directed else torch.maximum(edges, edges.mT))


class NodeNorm(nn.BatchNorm1d):
    """Batch normalization over the real nodes of the rows; running statistics when served.

    Rows of different padded sizes are encoded, and so normalized in training, apart.
    """

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Maps x [B,N,H] and mask [B,N] to [B,N,H]; padding nodes become 0 in training."""
        if not self.training:
            scale = self.weight * torch.rsqrt(self.running_var + self.eps)
            return (x - self.running_mean) * scale + self.bias
        real = mask > 0
        out = torch.zeros_like(x)
        out[real] = super().forward(x[real])
        return out


class Convolution(nn.Module):
    """A linear layer, averages over neighbours, batch normalization and a rectifier."""

    def __init__(self, width: int):
        super().__init__()
        self.linear, self.norm = nn.Linear(width, width), NodeNorm(width)

    def forward(self, x: Tensor, around: Tensor, mask: Tensor) -> Tensor:
        """Maps x [B,N,H], ``averages`` [B,N,N] and mask [B,N] to [B,N,H]."""
        return torch.relu(self.norm(around @ self.linear(x), mask))


class ScheduleNetwork(nn.Module):
    """Maps the features of nodes and of their schedule to a run time, without the bias."""

    def __init__(self, inputs: tuple[int, int], settings: SinghSettings):
        super().__init__()
        self.directed = settings.directed
        width = settings.invariant + settings.dependent
        self.invariant = nn.Linear(inputs[0], settings.invariant)
        self.dependent = nn.Linear(inputs[1], settings.dependent)
        self.blocks = nn.ModuleList(Convolution(width) for _ in range(settings.blocks))
        self.readout = nn.Linear((settings.blocks + 1) * width, 1, bias=False)

    def forward(self, first: Tensor, edges: Tensor, mask: Tensor) -> Tensor:
        """Maps E0 [B,N,H], edges [B,N,N] and mask [B,N] to [B,1]."""
        sums = [sum_of_nodes(vectors, mask) for vectors in self.levels(first, edges, mask)]
        return self.readout(torch.cat(sums, -1))

    def levels(self, first: Tensor, edges: Tensor, mask: Tensor) -> list[Tensor]:
        """Returns the nodes' vectors before and after every block: [B,N,H] each."""
        around, levels = averages(edges, self.directed), [first]
        for block in self.blocks:
            levels.append(block(levels[-1], around, mask))
        return levels


class SinghEncoder(SegmentEncoder):
    """Encodes rows by their run time without the bias, so that an embedding has one channel."""

    def __init__(self, settings: SinghSettings):
        super().__init__()
        self.features, self.tile = Standardise(FEATURES), Standardise(TILE_FEATURES)
        self.opcode = nn.Embedding(OPCODES, settings.opcode)
        self.network = ScheduleNetwork((FEATURES + settings.opcode, TILE_FEATURES), settings)

    def fit(self, graphs: Sequence[Graph]) -> None:
        """Computes the statistics of the training graphs."""
        self.features.fit(node_rows(graphs))
        self.tile.fit(tile_rows(graphs))

    def embed(self, batch: SegmentBatch) -> Tensor:
        """Maps a batch to [B,1]."""
        edges, mask = every_row(batch, batch.edges), every_row(batch, batch.mask)
        return self.network(self._first(batch), edges, mask)

    def nodes(self, batch: SegmentBatch) -> Tensor:
        """Returns the nodes' vectors of every row after the last block: [B,N,H]."""
        edges, mask = every_row(batch, batch.edges), every_row(batch, batch.mask)
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
        self.encoder, self.head = SinghEncoder(settings), Bias()


_TRAINING = TrainSettings(
    optimizer="adagrad",
    learning_rate=0.0075,
    decay=1.0,
    weight_decay=1e-4,
    clip=None,
    averaging=0.0,
    graphs_per_step=8,
    loss=LossSettings("singh-relative"),
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
