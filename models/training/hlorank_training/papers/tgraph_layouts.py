"""TGraph for layouts (2023 and 2024, section 2), with and without attention across configurations.

Where the paper and its public code differ, this is the code, from which the published results
probably come.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch.nn.functional as F
from torch import Tensor, nn

from hlorank_training.data.prepare import Form
from hlorank_training.models.architecture import Architecture, Preset
from hlorank_training.models.layout_part import SLOTS
from hlorank_training.models.training_settings import LossSettings, TrainSettings
from hlorank_training.papers.tgraph_layers import (
    Attentions,
    Dense,
    NodeInputs,
    Nodes,
    SageBlock,
    first_linear,
    instance_norm,
)
from hlorank_training.whole_graphs.graph import (
    Permutations,
    ServingRule,
    WholeGraph,
    read_pruned_graph,
)
from hlorank_training.whole_graphs.model import (
    CrossConfigurationAttention,
    WholeGraphModel,
    mean_over,
    node_rows,
)

_ORDERS_SEED = 101


@dataclass(frozen=True)
class TGraphLayoutSettings:
    """Sizes and parts of TGraph for layouts."""

    hidden: int = 256
    opcode: int = 16
    value: int = 4
    """Width of the embedding of a layout value."""
    dropout: float = 0.2
    cross: bool = True
    """Attention across configurations; scores then depend on the others of a chunk."""
    pad_value: int = -1
    """Value of the places of list columns that a list does not fill."""
    orders: int = 10
    """Orders of the configurations over which the server averages, if scores depend on them."""
    task: str = "layout"

    def attentions(self) -> Attentions:
        """Returns how the layers' attentions are created."""
        cross = CrossConfigurationAttention if self.cross else nn.Identity
        return Attentions(cross, doubles=self.cross)


class Join(nn.Module):
    """A linear layer over the features of nodes and the configuration of every node.

    Only configurable nodes differ between configurations, so everything else is computed once.
    """

    def __init__(self, inputs: NodeInputs, value: int, width: int):
        super().__init__()
        self.inputs = inputs
        self.linear = first_linear(SLOTS * value + inputs.width, width)

    def forward(self, opcode: Tensor, features: Tensor, configuration) -> Tensor:
        """Maps opcode [N], features [N,140], configurable [K] and config [C,K,18] to [C,N,H]."""
        configurable, config = configuration
        nothing = self.inputs.not_configurable(SLOTS)
        split = [len(nothing), self.inputs.width]
        of_layouts, of_nodes = self.linear.weight.split(split, 1)
        static = F.linear(self.inputs(opcode, features), of_nodes, self.linear.bias)
        static = static + F.linear(nothing, of_layouts)
        moved = F.linear(self.inputs.values(config) - nothing, of_layouts)
        return static.expand(config.shape[0], -1, -1).index_add(1, configurable, moved)


class TGraphLayout(WholeGraphModel):
    """TGraph's model for layouts, with or without attention across configurations."""

    def __init__(self, settings: TGraphLayoutSettings):
        super().__init__()
        hidden = settings.hidden
        attentions = settings.attentions()
        self.settings = settings
        self.batch_dependent = settings.cross
        self.rule = ServingRule(128, nodes="pruned")
        if settings.cross:
            orders = Permutations(settings.orders, _ORDERS_SEED)
            self.rule = replace(self.rule, chunking="even", permutations=orders)
        self.inputs = NodeInputs(settings.opcode, settings.value)
        inner = attentions.inner(hidden)
        linears = Join(self.inputs, settings.value, inner), first_linear(hidden, inner)
        self.first = nn.ModuleList(Dense(linear, hidden, attentions) for linear in linears)
        self.blocks = nn.ModuleList(
            SageBlock(hidden, settings.dropout, attentions) for _ in range(2)
        )
        self.head = nn.Linear(hidden, 1)

    @property
    def architecture(self) -> str:
        """Name in the registry and in manifests."""
        return _WITH_CROSS if self.settings.cross else _WITHOUT_CROSS

    @classmethod
    def form(cls, settings: TGraphLayoutSettings) -> Form:
        """Returns the form in which a model with these settings takes graphs."""
        return Form(read_pruned_graph, settings.pad_value)

    def fit(self, graphs: Sequence[WholeGraph]) -> None:
        """Computes the means and deviations of the training graphs' nodes."""
        self.inputs.fit(node_rows(graphs))

    def forward(self, opcode, features, edges, configuration: tuple[Tensor, ...]) -> Tensor:
        """Maps the inputs of ``model.onnx`` to scores f32 [C]."""
        consumers, producers = edges[0], edges[1]
        nodes = Nodes(instance_norm, partial(mean_over, at=producers, of=consumers))
        join, dense = self.first
        x = dense(nodes, join(nodes, opcode, features, configuration))
        for block in self.blocks:
            x = block(x, nodes)
        return self.head(x.mean(1)).squeeze(-1)


_WITH_CROSS = "tgraph-layout-cross"
_WITHOUT_CROSS = "tgraph-layout"
"""The model for random layouts."""
_PAPER_TRAINING = TrainSettings(
    epochs=750,
    minutes=24 * 60,
    weight_decay=1e-5,
    warm_up=0.05,
    averaging=0.0,
    graphs_per_step=1,
    configurations_per_graph=64,
    patience=750,
    repeated="smallest",
    loss=LossSettings("tgraph-hinge-mean"),
)
_SMALL_TRAINING = replace(
    _PAPER_TRAINING, epochs=200, minutes=6.0, averaging=0.98, patience=40, learning_rate=2e-3
)
_WITHOUT = TGraphLayoutSettings(cross=False)
_PRESETS = {
    "small": Preset(TGraphLayoutSettings(hidden=64), _SMALL_TRAINING),
    "paper": Preset(TGraphLayoutSettings(), _PAPER_TRAINING),
}
_PRESETS_WITHOUT = {
    "small": Preset(replace(_WITHOUT, hidden=64), _SMALL_TRAINING),
    "paper": Preset(_WITHOUT, replace(_PAPER_TRAINING, configurations_per_graph=128)),
}
ARCHITECTURES = (
    Architecture(_WITH_CROSS, TGraphLayout, _PRESETS),
    Architecture(_WITHOUT_CROSS, TGraphLayout, _PRESETS_WITHOUT),
)
