"""The part of a model for the columns of a tile that follow from the loops of its kernel."""

import torch
from torch import Tensor, nn

from hlorank_training.models.graph_layers import Standardise
from hlorank_training.models.segment_model import LOOP_FEATURES

LOOP_CHANNELS = 32
"""Channels of an embedding that the columns of loops have alone."""
_WIDTH = 128
_DROPOUT = 0.2
_COLUMN_DROPOUT = 0.1


class LoopPart(nn.Module):
    """Two layers over the columns of loops: what all nodes of a row get, and channels of their own.

    The columns say what a tile reads of each tensor, how far apart and how often, so they predict
    run times even without the graph. In a row of their own, they are not averaged over nodes.
    """

    def __init__(self, joined: int):
        super().__init__()
        self.standardise = Standardise(LOOP_FEATURES)
        self.hide = nn.Dropout(_COLUMN_DROPOUT)
        self.first = nn.Linear(LOOP_FEATURES, _WIDTH)
        self.second = nn.Linear(_WIDTH, _WIDTH)
        self.drop = nn.Dropout(_DROPOUT)
        self.to_nodes = nn.Linear(_WIDTH, joined, bias=False)
        self.to_embedding = nn.Linear(_WIDTH, LOOP_CHANNELS)

    def fit(self, columns: Tensor) -> None:
        """Computes the statistics of the standardization from raw columns [n,198]."""
        self.standardise.fit(columns)

    def forward(self, columns: Tensor) -> tuple[Tensor, Tensor]:
        """Maps columns [B,198] to what is added to all nodes [B,H], and to channels [B,32]."""
        h = torch.relu(self.first(self.hide(self.standardise(columns))))
        h = h + torch.relu(self.second(self.drop(h)))
        return self.to_nodes(h), self.to_embedding(h)
