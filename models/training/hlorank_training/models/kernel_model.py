"""Scores a kernel as a whole-graph model does, by a segment model of which it is one segment."""

import torch
from torch import Tensor, nn

from hlorank_training.models.segment_model import SegmentModel
from hlorank_training.models.whole_graph_layers import adjacency


class KernelModel(nn.Module):
    """The whole-graph form of a segment model for tiles: same weights, same scores."""

    kind = "graph"

    def __init__(self, model: SegmentModel):
        super().__init__()
        self.model, self.settings, self.architecture = model, model.settings, model.architecture

    def forward(self, opcode, features, edges, configuration: tuple[Tensor, ...]) -> Tensor:
        """Maps opcode i64 [N], features f32 [N,140], edges i64 [2,E] (consumers, producers) and
        config f32 [C,24] to scores f32 [C]."""
        (config,) = configuration
        static = (
            opcode,
            features,
            adjacency(edges, opcode.shape[0]),
            torch.ones_like(features[:, 0]),
        )
        segment = torch.zeros_like(config[:, 0], dtype=torch.int64)
        embedding = self.model.encoder(*(part.unsqueeze(0) for part in static), segment, config)
        return self.model.head(embedding)
