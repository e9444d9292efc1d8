"""What the tile baselines of TpuGraphs (2023, appendix B) share: inputs, settings, training."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hlorank_research.papers.losses import PaperLoss
from hlorank_research.papers.scaling import MinMax
from hlorank_research.papers.tile_encoder import Readout, every_row, with_tile
from hlorank_training.data.dataset import Graph
from hlorank_training.models.architecture import Architecture, Preset
from hlorank_training.models.graph_layers import look_up, sum_of_nodes
from hlorank_training.models.segment_batch import FEATURES, OPCODES, SegmentBatch
from hlorank_training.models.segment_model import SegmentEncoder, SegmentModel, node_rows, tile_rows
from hlorank_training.models.tile_part import TILE_FEATURES
from hlorank_training.models.training_settings import TrainSettings

_LOSS = PaperLoss("tpugraphs-list-mle", temperature=10)
PAPER_TRAINING = TrainSettings(
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
)
SMALL_TRAINING = TrainSettings(learning_rate=2e-3, graphs_per_step=8, weight_decay=2e-4, loss=_LOSS)


@dataclass(frozen=True)
class TileSettings:
    """Sizes of a tile baseline."""

    opcode: int
    """Width of the opcode embedding."""
    hidden: int = 64
    layers: int = 3
    late_join: bool = False
    """Whether the tile is joined after the sum over nodes instead of at every node."""
    directed: bool = False
    """ResGCN only: whether each term of a layer has weights of its own."""
    task: str = "tile"


class TileInputs(nn.Module):
    """Node features and tiles, scaled to [0,1], and embedded opcodes."""

    def __init__(self, opcode: int):
        super().__init__()
        self.features = MinMax(FEATURES)
        self.tile = MinMax(TILE_FEATURES)
        self.opcode = nn.Embedding(OPCODES, opcode)

    def fit(self, graphs: Sequence[Graph]) -> None:
        """Computes the minima and maxima of the training graphs."""
        self.features.fit(node_rows(graphs))
        self.tile.fit(tile_rows(graphs))

    def nodes(self, batch: SegmentBatch) -> Tensor:
        """Returns embedded opcodes and features of all nodes: [S,N,opcode+140]."""
        opcode = look_up(self.opcode.weight, batch.opcode)
        return torch.cat([opcode, self.features(batch.features)], -1)


class JoinedEncoder(SegmentEncoder):
    """Layers over the edges and a sum over nodes, with the tile joined early or late.

    Subclasses define ``layers_of``.
    """

    def __init__(self, settings: TileSettings):
        super().__init__()
        self.late_join = settings.late_join
        self.inputs = TileInputs(settings.opcode)

    def embed(self, batch: SegmentBatch) -> Tensor:
        """Maps a batch to [B,H], or with the tile joined late to [B,H+24]."""
        if not self.late_join:
            return sum_of_nodes(self.nodes(batch), every_row(batch, batch.mask))
        kernels = sum_of_nodes(self.layers_of(batch.edges, self.inputs.nodes(batch)), batch.mask)
        return torch.cat([every_row(batch, kernels), self.inputs.tile(batch.config)], -1)

    def fit(self, graphs: Sequence[Graph]) -> None:
        """Computes the minima and maxima of the training graphs."""
        self.inputs.fit(graphs)

    def nodes(self, batch: SegmentBatch) -> Tensor:
        """Returns the nodes' vectors of every row after the last layer: [B,N,H]."""
        edges = every_row(batch, batch.edges)
        nodes = every_row(batch, self.inputs.nodes(batch))
        if not self.late_join:
            nodes = with_tile(nodes, self.inputs.tile(batch.config))
        return self.layers_of(edges, nodes)

    def layers_of(self, edges: Tensor, nodes: Tensor) -> Tensor:
        """Maps edges [B,N,N] and inputs of nodes [B,N,F] to vectors [B,N,H]."""
        raise NotImplementedError


def node_width(settings: TileSettings) -> int:
    """Returns the number of inputs of a node."""
    return settings.opcode + FEATURES + (0 if settings.late_join else TILE_FEATURES)


def pooled_width(settings: TileSettings) -> int:
    """Returns the width of the sum over nodes, with the tile if it is joined late."""
    return settings.hidden + (TILE_FEATURES if settings.late_join else 0)


class TileBaseline(SegmentModel):
    """A tile baseline, made of its parts."""

    def __init__(self, settings: Any, encoder: nn.Module, head: nn.Module, embedding: int):
        super().__init__()
        self.settings = settings
        self.embedding = embedding
        self.encoder = encoder
        self.head = head


class JoinedBaseline(TileBaseline):
    """A baseline whose tile is joined early or late; subclasses define its layers."""

    layers_name: str
    """Last part of the architecture's name."""
    encoder_class: type[JoinedEncoder]
    dense_layers: int
    """Hidden layers between the sum over nodes and the score."""

    def __init__(self, settings: TileSettings):
        embedding = pooled_width(settings)
        hidden = [settings.hidden] * self.dense_layers
        head = Readout(embedding, *hidden, activation=nn.LeakyReLU(SLOPE))
        super().__init__(settings, self.encoder_class(settings), head, embedding)

    @property
    def architecture(self) -> str:
        """Name in the registry and in manifests."""
        return f"tpugraphs-{'late' if self.settings.late_join else 'early'}-{self.layers_name}"


def joined_early_and_late(
    model: type[JoinedBaseline], small: TileSettings, paper: TileSettings
) -> tuple[Architecture, Architecture]:
    """Returns the registry's entries of a model with the tile joined early, and late."""

    def entry(join: str, late: bool) -> Architecture:
        presets = {
            "small": Preset(replace(small, late_join=late), SMALL_TRAINING),
            "paper": Preset(replace(paper, late_join=late), PAPER_TRAINING),
        }
        return Architecture(f"tpugraphs-{join}-{model.layers_name}", model, presets)

    return entry("early", False), entry("late", True)


class Dense(nn.Sequential):
    """Two linear layers with an activation between them."""

    def __init__(self, inputs: int, hidden: int):
        super().__init__(nn.Linear(inputs, hidden), nn.LeakyReLU(SLOPE), nn.Linear(hidden, hidden))


SLOPE = 0.2
"""Slope of the activation below 0."""


def activate(x: Tensor) -> Tensor:
    """Returns the leaky rectifier of x."""
    return F.leaky_relu(x, SLOPE)
