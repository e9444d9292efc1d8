"""TpuGraphs' GraphSAGE for tiles (2023, appendix B): the tile joined early or late."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hlorank_training.models.architectures.architecture import Architecture, Preset
from hlorank_training.models.architectures.tpugraphs_tiles import (
    PAPER_TRAINING,
    SLOPE,
    SMALL_TRAINING,
    JoinedEncoder,
    TileBaseline,
    TileSettings,
    activate,
    node_width,
    pooled_width,
)
from hlorank_training.models.tile_encoder import Readout


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


class TileSage(TileBaseline):
    """EarlyJoinSAGE and LateJoinSAGE."""

    def __init__(self, settings: TileSettings):
        embedding = pooled_width(settings)
        hidden = settings.hidden
        head = Readout(embedding, hidden, hidden, activation=nn.LeakyReLU(SLOPE))
        super().__init__(settings, SageEncoder(settings), head, embedding)

    @property
    def architecture(self) -> str:
        """Name in the registry and in manifests."""
        return "tpugraphs-late-sage" if self.settings.late_join else "tpugraphs-early-sage"


def _entry(name: str, late_join: bool) -> Architecture:
    presets = {
        "small": Preset(TileSettings(opcode=32, late_join=late_join), SMALL_TRAINING),
        "paper": Preset(TileSettings(opcode=64, late_join=late_join), PAPER_TRAINING),
    }
    return Architecture(name, TileSage, presets)


ARCHITECTURES = (
    _entry("tpugraphs-early-sage", late_join=False),
    _entry("tpugraphs-late-sage", late_join=True),
)
