"""ResModel, a graph convolutional network with residuals, of TpuGraphs' code for layouts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hlorank_research.papers.losses import PaperLoss
from hlorank_research.papers.scaling import MinMax
from hlorank_research.whole_graphs.graph import WholeGraph
from hlorank_research.whole_graphs.layers import degree, sum_over
from hlorank_research.whole_graphs.model import WholeGraphModel, layout_rows, node_rows
from hlorank_research.whole_graphs.serving_rule import ServingRule
from hlorank_training.models.architecture import Architecture, Preset
from hlorank_training.models.graph_layers import look_up
from hlorank_training.models.layout_part import SLOTS
from hlorank_training.models.segment_batch import FEATURES, OPCODES
from hlorank_training.models.training_settings import TrainSettings

_LAYOUT_FACTOR = 100.0
_SLOPE = 0.2
"""Slope of LeakyReLU below 0."""


@dataclass(frozen=True)
class ResModelSettings:
    """Sizes of the model, and how its segments are trained."""

    hidden: int = 32
    opcode: int = 32
    layers: int = 2
    segment: int | None = 5000
    """Nodes, one after the other, through which a training step computes gradients; if None, all
    (``fullgraph`` and ``backpropdropout`` of the code)."""
    task: str = "layout"


class ResModel(WholeGraphModel):
    """Graph convolutions with symmetric normalization, over operands, users and the node itself."""

    architecture = "tpugraphs-res-model"

    def __init__(self, settings: ResModelSettings):
        super().__init__()
        hidden = settings.hidden
        self.settings = settings
        self.rule = ServingRule(chunk_configs=16)
        self.features = MinMax(FEATURES)
        self.layout = MinMax(SLOTS)
        self.opcode = nn.Embedding(OPCODES, settings.opcode)
        self.first = _dense(SLOTS + FEATURES + settings.opcode, hidden)
        self.layers = nn.ModuleList(_dense(SLOTS + hidden, hidden) for _ in range(settings.layers))
        self.joined = nn.Linear(3 * hidden, hidden, bias=False)
        self.last = nn.Linear(hidden, 1, bias=False)

    def fit(self, graphs: Sequence[WholeGraph]) -> None:
        """Computes the ranges of the training graphs' nodes and layouts."""
        self.features.fit(node_rows(graphs))
        self.layout.fit(layout_rows(graphs))

    def forward(self, opcode, features, edges, configuration: tuple[Tensor, ...]) -> Tensor:
        """Maps the inputs of ``model.onnx`` to scores f32 [C]."""
        x = self.nodes(opcode, features, edges, configuration)
        return self.last(_act(self.joined(_readout(x, configuration[0])))).squeeze(-1)

    def nodes(self, opcode, features, edges, configuration: tuple[Tensor, ...]) -> Tensor:
        """Returns the vectors of nodes: [C,N,H]."""
        configurable, config = configuration
        layouts = self._layouts(opcode.shape[0], configurable, config)
        static = torch.cat([self.features(features), look_up(self.opcode.weight, opcode)], -1)
        static = static.expand(config.shape[0], -1, -1)
        trained = self._trained(opcode)
        x = trained(_act(self.first(torch.cat([layouts, static], -1))))
        for layer in self.layers:
            x = trained(x + _act(layer(_smoothed(torch.cat([layouts, x], -1), edges))))
        return x

    def _layouts(self, nodes: int, configurable: Tensor, config: Tensor) -> Tensor:
        """Returns the scaled layouts of configurable nodes, and 0 elsewhere: [C,N,18]."""
        values = _LAYOUT_FACTOR * self.layout(config.float())
        return values.new_zeros(config.shape[0], nodes, SLOTS).index_add(1, configurable, values)

    def _trained(self, opcode: Tensor):
        """Returns what stops the gradients of the nodes that this step does not train."""
        nodes = opcode.shape[0]
        most = self.settings.segment
        if not self.training or most is None or nodes <= most:
            return lambda x: x
        start = int(torch.randint(nodes - most + 1, ()))
        place = torch.arange(nodes, device=opcode.device).unsqueeze(-1)
        inside = (place >= start) & (place < start + most)
        return lambda x: torch.where(inside, x, x.detach())


def _dense(inputs: int, hidden: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, hidden), nn.LeakyReLU(_SLOPE), nn.Linear(hidden, hidden))


def _act(x: Tensor) -> Tensor:
    return F.leaky_relu(x, _SLOPE)


def _smoothed(h: Tensor, edges: Tensor) -> Tensor:
    """Multiplies h [C,N,H] by the adjacency in both directions with self loops, normalized by the
    square roots of the degrees of both ends."""
    consumers = edges[0]
    producers = edges[1]
    nodes = h.shape[1]
    degrees = 1 + degree(consumers, nodes) + degree(producers, nodes)
    scale = torch.rsqrt(degrees).unsqueeze(-1)
    scaled = h * scale
    around = sum_over(scaled, consumers, producers) + sum_over(scaled, producers, consumers)
    return (scaled + around) * scale


def _readout(x: Tensor, configurable: Tensor) -> Tensor:
    """Returns the mean over nodes and the unit sums over all and configurable nodes: [C,3H]."""
    of_configurable = x.index_select(1, configurable).sum(1)
    return torch.cat(
        [x.mean(1), F.normalize(x.sum(1), dim=-1), F.normalize(of_configurable, dim=-1)], -1
    )


_PAPER_TRAINING = TrainSettings(
    optimizer="adam",
    epochs=50,
    minutes=24 * 60,
    weight_decay=1e-4,
    clip=1e-2,
    clip_each=True,
    averaging=0.0,
    graphs_per_step=8,
    configurations_per_graph=16,
    favour_fast=True,
    patience=25,
    loss=PaperLoss("tpugraphs-list-mle"),
)
_PRESETS = {
    "small": Preset(
        ResModelSettings(segment=None),
        replace(
            _PAPER_TRAINING,
            epochs=200,
            minutes=6.0,
            averaging=0.98,
            graphs_per_step=4,
            configurations_per_graph=32,
            favour_fast=False,
            patience=40,
        ),
    ),
    "paper": Preset(ResModelSettings(), _PAPER_TRAINING),
}
ARCHITECTURES = (Architecture(ResModel.architecture, ResModel, _PRESETS),)
