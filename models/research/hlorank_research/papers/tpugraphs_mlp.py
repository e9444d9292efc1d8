"""TpuGraphs' multi-layer perceptron for tiles (2023, appendix B): sums over nodes, no edges."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from hlorank_research.papers.tile_encoder import Readout, every_row
from hlorank_research.papers.tpugraphs_tiles import (
    PAPER_TRAINING,
    SLOPE,
    SMALL_TRAINING,
    TileBaseline,
    TileInputs,
    TileSettings,
)
from hlorank_training.data.dataset import Graph
from hlorank_training.models.architecture import Architecture, Preset
from hlorank_training.models.graph_layers import sum_of_nodes
from hlorank_training.models.segment_batch import FEATURES, SegmentBatch
from hlorank_training.models.segment_model import SegmentEncoder
from hlorank_training.models.tile_part import TILE_FEATURES


class SumEncoder(SegmentEncoder):
    """Sums node features and opcode embeddings, and joins the tile."""

    def __init__(self, settings: TileSettings):
        super().__init__()
        self.inputs = TileInputs(settings.opcode)

    def fit(self, graphs: Sequence[Graph]) -> None:
        """Computes the minima and maxima of the training graphs."""
        self.inputs.fit(graphs)

    def embed(self, batch: SegmentBatch) -> Tensor:
        """Maps a batch to [B,opcode+140+24]."""
        kernels = sum_of_nodes(self.inputs.nodes(batch), batch.mask)
        return torch.cat([every_row(batch, kernels), self.inputs.tile(batch.config)], -1)


class TileMlp(TileBaseline):
    """The perceptron; ``layers`` counts the dense layers, with the last one."""

    architecture = "tpugraphs-mlp"

    def __init__(self, settings: TileSettings):
        embedding = settings.opcode + FEATURES + TILE_FEATURES
        hidden = [settings.hidden] * (settings.layers - 1)
        head = Readout(embedding, *hidden, activation=nn.LeakyReLU(SLOPE))
        super().__init__(settings, SumEncoder(settings), head, embedding)


ARCHITECTURES = (
    Architecture(
        TileMlp.architecture,
        TileMlp,
        {
            "small": Preset(TileSettings(opcode=16), SMALL_TRAINING),
            "paper": Preset(TileSettings(opcode=32), PAPER_TRAINING),
        },
    ),
)
