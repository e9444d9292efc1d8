"""TpuGraphs' best layout baseline: GraphSAGE with Graph Segment Training (sections 4 and 5).

A graph is cut into blocks of nodes, whose scores are added. A training step computes gradients of
one block of a graph, and takes the scores of the others from a table of their last values.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hlorank_training.models.architecture import Architecture, Preset
from hlorank_training.models.graph_layers import ABSENT, look_up
from hlorank_training.models.layout_part import SLOTS
from hlorank_training.models.segment_model import FEATURES, OPCODES
from hlorank_training.models.training_settings import LossSettings, TrainSettings
from hlorank_training.papers.tile_encoder import ZScore
from hlorank_training.whole_graphs.graph import Inputs, ServingRule, WholeGraph
from hlorank_training.whole_graphs.model import WholeGraphModel, mean_over, node_rows

_FIRST_FACTOR = 100.0
"""First value of the learned factors of the opcode and of the layouts."""


@dataclass(frozen=True)
class GstSettings:
    """Sizes of the model, and how its segments are trained."""

    hidden: int = 256
    inner: int = 128
    """Width of the first layer and of the opcode's embedding."""
    layers: int = 3
    dropout: float = 0.1
    nodes: int = 1000
    """Maximum nodes of a block, except that the last node may belong to the one before."""
    keep: float = 0.5
    """Probability that a block which is not trained counts in a training step."""
    task: str = "layout"


class GstSage(WholeGraphModel):
    """GraphSAGE over the users of nodes, and a readout of every block."""

    architecture = "tpugraphs-gst-sage"

    def __init__(self, settings: GstSettings):
        super().__init__()
        hidden = settings.hidden
        inner = settings.inner
        self.settings = settings
        self.rule = ServingRule(chunk_configs=4)
        self.features = ZScore(FEATURES)
        self.opcode = nn.Embedding(OPCODES, inner)
        self.opcode_factor = nn.Parameter(torch.tensor(_FIRST_FACTOR))
        self.layout_factors = nn.Parameter(torch.full((SLOTS,), _FIRST_FACTOR))
        self.first = nn.Linear(FEATURES + inner + SLOTS, inner)
        self.second = nn.Linear(inner, hidden)
        self.dropout = nn.Dropout(settings.dropout)
        self.activation = nn.PReLU()
        self.users = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(settings.layers))
        self.self_parts = nn.ModuleList(
            nn.Linear(hidden, hidden, bias=False) for _ in range(settings.layers)
        )
        self.dense = nn.Linear(hidden, hidden)
        self.last = nn.Linear(hidden, 1)
        self.last_scores: dict[str, Tensor] = {}
        """Last score of every block and configuration [P,c] by graph, in training only."""

    def fit(self, graphs: Sequence[WholeGraph]) -> None:
        """Computes the means and deviations of the training graphs' nodes."""
        self.features.fit(node_rows(graphs))

    def forward(self, opcode, features, edges, configuration: tuple[Tensor, ...]) -> Tensor:
        """Maps the inputs of ``model.onnx`` to scores f32 [C]."""
        size = block_size(opcode.shape[0], self.settings.nodes)
        return self.block_scores(size, opcode, features, edges, configuration).sum(-1)

    def block_scores(self, size: int, opcode, features, edges, configuration) -> Tensor:
        """Returns the score of every block of ``size`` nodes: [C,P]."""
        pooled = _pool(self.nodes(size, opcode, features, edges, configuration), size)
        pooled = F.normalize(pooled, dim=-1)
        return self.last(F.normalize(torch.relu(self.dense(pooled)), dim=-1)).squeeze(-1)

    def nodes(self, size: int, opcode, features, edges, configuration) -> Tensor:
        """Returns the vectors of nodes in blocks of ``size`` nodes: [C,N,H]."""
        joined = self._joined(opcode, features, configuration)
        h = self.dropout(self.second(self.first(joined)))
        h = F.normalize(self.activation(h), dim=-1)
        consumers = edges[0]
        producers = edges[1]
        inside = (consumers // size == producers // size).float()
        for users, self_part in zip(self.users, self.self_parts, strict=True):
            around = mean_over(h, producers, consumers, inside)
            # As published, there is no activation between these layers.
            h = users(around) + self_part(h)
        return h

    def _joined(self, opcode: Tensor, features: Tensor, configuration) -> Tensor:
        configurable, config = configuration
        embedded = self.opcode_factor * look_up(_at_most_one(self.opcode.weight), opcode)
        static = torch.cat([self.features(features), embedded], -1)
        layouts = config.new_zeros(config.shape[0], opcode.shape[0], SLOTS, dtype=torch.float)
        layouts = layouts.index_add(1, configurable, config * self.layout_factors)
        return torch.cat([static.expand(config.shape[0], -1, -1), layouts], -1)

    def training_scores(self, graph: WholeGraph, chosen: np.ndarray) -> Tensor:
        """Returns scores f32 [c] of which one block has gradients, and remembers its scores."""
        nodes = len(graph.inputs["opcode"])
        size = block_size(nodes, self.settings.nodes)
        blocks = -(-nodes // size)
        if not self.training or blocks == 1:
            return super().training_scores(graph, chosen)
        number = int(torch.randint(blocks, ()))
        inputs, config = block(graph.inputs, graph.config[chosen], size, number)
        trained = self.block_scores(size, *self.tensors(inputs, config)).squeeze(-1)
        table = self.last_scores.setdefault(
            graph.name, torch.zeros(blocks, len(graph.config), device=trained.device)
        )
        others = table[:, chosen] * (
            torch.rand(blocks, 1, device=trained.device) < self.settings.keep
        )
        others[number] = 0
        table[number, chosen] = trained.detach()
        return trained * ((blocks - 1) * self.settings.keep + 1) + others.sum(0)


def block_size(nodes: int, most: int) -> int:
    """Returns the nodes of every block but the last: 372 nodes are one block, and 2,500 nodes are
    834, 834 and 832."""
    return nodes // (nodes // most + 1) + 1


def block(inputs: Inputs, config: np.ndarray, size: int, number: int) -> tuple[Inputs, np.ndarray]:
    """Returns one block of a graph as a graph, with the layouts of its configurable nodes."""
    start = number * size
    end = (number + 1) * size
    configurable = inputs["configurable"]
    edges = inputs["edges"]
    within = (edges >= start) & (edges < end)
    slots = (configurable >= start) & (configurable < end)
    return {
        "opcode": inputs["opcode"][start:end],
        "features": inputs["features"][start:end],
        "edges": np.ascontiguousarray(edges[:, within.all(0)] - start),
        "configurable": configurable[slots] - start,
    }, config[:, slots]


def _at_most_one(table: Tensor) -> Tensor:
    """Scales the rows of a table whose norm exceeds 1 to the norm 1."""
    return table / table.norm(dim=-1, keepdim=True).clamp(min=1)


def _pool(h: Tensor, size: int) -> Tensor:
    """Returns the maximum plus the mean over every block of ``size`` nodes: [C,P,H]."""
    nodes = h.shape[1]
    blocks = (nodes + size - 1) // size
    place = torch.arange(size, device=h.device) + size * torch.arange(
        blocks, device=h.device
    ).unsqueeze(-1)
    real = (place < nodes).unsqueeze(-1)
    rows = h.index_select(1, place.clamp(max=nodes - 1).flatten()).unflatten(1, (blocks, size))
    count = real.float().sum(1)
    return torch.where(real, rows, ABSENT).amax(2) + torch.where(real, rows, 0.0).sum(2) / count


_PAPER_TRAINING = TrainSettings(
    optimizer="adam",
    epochs=20_000,
    minutes=24 * 60,
    learning_rate=1e-4,
    weight_decay=5e-4,
    averaging=0.0,
    graphs_per_step=32,
    configurations_per_graph=32,
    patience=20_000,
    loss=LossSettings("gst-hinge"),
)
_PRESETS = {
    "small": Preset(
        GstSettings(hidden=64, inner=32),
        replace(
            _PAPER_TRAINING,
            epochs=200,
            minutes=6.0,
            learning_rate=2e-3,
            averaging=0.98,
            graphs_per_step=4,
            patience=40,
        ),
    ),
    "paper": Preset(GstSettings(), _PAPER_TRAINING),
}
ARCHITECTURES = (Architecture(GstSage.architecture, GstSage, _PRESETS),)
