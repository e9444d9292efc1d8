"""TpuGraphs' GraphSAGE for tiles (2023, appendix B): the tile joined early or late."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hlorank_research.papers.tpugraphs_tiles import (
    JoinedBaseline,
    JoinedEncoder,
    TileSettings,
    activate,
    joined_early_and_late,
    node_width,
)


class SumSage(nn.Module):
    """Sums over operands and users, without a self loop; every node's row has norm 1."""

    def __init__(self, inputs: int, hidden: int):
        super().__init__()
        self.linear = nn.Linear(2 * inputs, hidden)

    def forward(self, x: Tensor, around: Tensor) -> Tensor:
        """Maps x [B,N,F] and edges of both directions [B,N,N] to [B,N,H]."""
        joined = torch.cat([around @ x, x], -1)
        return F.normalize(activate(self.linear(joined)), dim=-1, eps=1e-6)


class SageEncoder(JoinedEncoder):
    """Encodes rows by SAGE layers and a sum over nodes."""

    def __init__(self, settings: TileSettings):
        super().__init__(settings)
        widths = [node_width(settings)] + [settings.hidden] * settings.layers
        self.sages = nn.ModuleList(map(SumSage, widths, widths[1:]))

    def layers_of(self, edges: Tensor, x: Tensor) -> Tensor:
        around = edges + edges.mT
        for sage in self.sages:
            x = sage(x, around)
        return x


class TileSage(JoinedBaseline):
    """EarlyJoinSAGE and LateJoinSAGE."""

    layers_name = "sage"
    encoder_class = SageEncoder
    dense_layers = 2


ARCHITECTURES = joined_early_and_late(TileSage, TileSettings(opcode=32), TileSettings(opcode=64))
