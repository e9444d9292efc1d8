"""The part of a model for the columns of a tile that follow from the loops of its kernel."""

import torch
from torch import Tensor, nn

from hlorank_training.models.graph_layers import RootMeanSquareNorm, Standardise
from hlorank_training.models.segment_model import LOOP_FEATURES

LOOP_CHANNELS = 32
"""Channels of an embedding that the columns of loops have alone; the last is a member's score."""
_WIDTH = 128
_DROPOUT = 0.2
_COLUMN_DROPOUT = 0.1


class LoopMember(nn.Module):
    """Scores a row by its columns of loops alone, beside the network and without its layers.

    It learns on its own, so its errors are unlike the network's, and the mean of both scores has a
    better order than either.
    """

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(LOOP_FEATURES, _WIDTH)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                RootMeanSquareNorm(_WIDTH),
                nn.Linear(_WIDTH, _WIDTH),
                nn.ReLU(),
                nn.Dropout(_DROPOUT),
                nn.Linear(_WIDTH, _WIDTH),
            )
            for _ in range(2)
        )
        self.score = nn.Linear(_WIDTH, 1)

    def forward(self, columns: Tensor) -> Tensor:
        """Maps standardized columns [B,198] to scores [B,1]."""
        h = self.first(columns)
        for block in self.blocks:
            h = h + block(h)
        return self.score(torch.relu(h))


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
        self.to_embedding = nn.Linear(_WIDTH, LOOP_CHANNELS - 1)
        self.member = LoopMember()

    def fit(self, columns: Tensor) -> None:
        """Computes the statistics of the standardization from raw columns [n,198]."""
        self.standardise.fit(columns)

    def forward(self, columns: Tensor) -> tuple[Tensor, Tensor]:
        """Maps columns [B,198] to what is added to all nodes [B,H], and to channels [B,32]."""
        standard = self.standardise(columns)
        h = torch.relu(self.first(self.hide(standard)))
        h = h + torch.relu(self.second(self.drop(h)))
        channels = [self.to_embedding(h), self.member(self.hide(standard))]
        return self.to_nodes(h), torch.cat(channels, -1)
