"""TpuGraphs' GCN with residuals for tiles (2023, appendix B): the tile joined early or late."""

from torch import Tensor, nn

from hlorank_research.papers.tpugraphs_tiles import (
    Dense,
    JoinedBaseline,
    JoinedEncoder,
    TileSettings,
    activate,
    joined_early_and_late,
    node_width,
)
from hlorank_training.models.graph_layers import mean_weights_with_self


def user_averages(edges: Tensor) -> Tensor:
    """Maps edges [B,N,N] to weights whose rows average a producer and its users."""
    return mean_weights_with_self(edges.mT)


class ResidualGcn(nn.Module):
    """Adds a dense layer of averages over users, their transpose, and the node itself."""

    def __init__(self, hidden: int, directed: bool):
        super().__init__()
        self.parts = nn.ModuleList(Dense(hidden, hidden) for _ in range(3 if directed else 1))

    def forward(self, x: Tensor, users: Tensor) -> Tensor:
        """Maps x [B,N,H] and ``user_averages`` [B,N,N] to [B,N,H]."""
        z = activate(x)
        terms = (users @ z, users.mT @ z, z)
        if len(self.parts) == 1:
            return x + self.parts[0](terms[0] + terms[1] + terms[2])
        return x + sum(part(term) for part, term in zip(self.parts, terms, strict=True))


class GcnEncoder(JoinedEncoder):
    """Encodes rows by residual GCN layers and a sum over nodes."""

    def __init__(self, settings: TileSettings):
        super().__init__(settings)
        hidden = settings.hidden
        self.first = Dense(node_width(settings), hidden)
        self.layers = nn.ModuleList(
            ResidualGcn(hidden, settings.directed) for _ in range(settings.layers)
        )

    def layers_of(self, edges: Tensor, nodes: Tensor) -> Tensor:
        users = user_averages(edges)
        x = self.first(nodes)
        for layer in self.layers:
            x = layer(x, users)
        return activate(x)


class TileGcn(JoinedBaseline):
    """EarlyJoinResGCN and LateJoinResGCN."""

    layers_name = "resgcn"
    encoder_class = GcnEncoder
    dense_layers = 1


ARCHITECTURES = joined_early_and_late(TileGcn, TileSettings(opcode=16), TileSettings(opcode=32))
