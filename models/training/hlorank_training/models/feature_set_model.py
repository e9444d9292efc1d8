"""A model of graphs with named features: Singh 2021, sections II to IV, for any columns."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from hlorank_training.data.feature_graphs import FeatureGraph
from hlorank_training.models.graph_layers import Standardise, mean_weights_with_self


class NodeNorm(nn.BatchNorm1d):
    """Batch normalization over the real nodes of the rows; running statistics when served.

    Rows of different padded sizes are encoded, and so normalized in training, apart.
    """

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Maps x [B,N,H] and mask [B,N] to [B,N,H]; padding nodes become 0 in training."""
        if not self.training:
            scale = self.weight * torch.rsqrt(self.running_var + self.eps)
            return (x - self.running_mean) * scale + self.bias
        real = mask > 0
        out = torch.zeros_like(x)
        out[real] = super().forward(x[real])
        return out


class Convolution(nn.Module):
    """A linear layer, averages over neighbours, batch normalization and a rectifier."""

    def __init__(self, width: int):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.norm = NodeNorm(width)

    def forward(self, x: Tensor, around: Tensor, mask: Tensor) -> Tensor:
        """Maps x [B,N,H], the weights of averages [B,N,N] and mask [B,N] to [B,N,H]."""
        return torch.relu(self.norm(around @ self.linear(x), mask))


class ScheduleNetwork(nn.Module):
    """Maps the features of nodes and of their schedule to vectors of nodes."""

    def __init__(self, inputs: tuple[int, int], widths: tuple[int, int], blocks: int):
        """``inputs`` and ``widths`` are those of a node without the schedule, and of the schedule
        at a node."""
        super().__init__()
        self.invariant, self.dependent = map(nn.Linear, inputs, widths)
        self.blocks = nn.ModuleList(Convolution(sum(widths)) for _ in range(blocks))

    def forward(self, first: Tensor, edges: Tensor, mask: Tensor) -> list[Tensor]:
        """Maps E0 [B,N,H], edges [B,N,N] and mask [B,N] to the vectors before and after every
        block: [B,N,H] each. A node averages itself, its operands and its users."""
        around = mean_weights_with_self(torch.maximum(edges, edges.mT))
        levels = [first]
        for block in self.blocks:
            levels.append(block(levels[-1], around, mask))
        return levels


_FIRST_COST = -4.0
"""Logarithm of a cost before training, relative to the mean amount of its column."""


@dataclass(frozen=True)
class FeatureSetSettings:
    """Sizes of the network."""

    node_columns: int
    config_columns: int
    invariant: int = 64
    """Width that the features of a node have, without the configuration; the paper has 220."""
    dependent: int = 32
    """Width that a configuration has at a node; the paper has 60."""
    convolutions: int = 2
    products: tuple[tuple[int, ...], ...] = ()
    """Columns of configurations, whose products are further amounts of work."""
    order: bool = False
    """Whether scores only order the configurations of a graph, and are no run times."""


@dataclass(frozen=True)
class FeatureBatch:
    """Configurations of several graphs, padded to one number of nodes.

    What does not depend on the configuration may have one row for all of them.
    """

    nodes: Tensor
    """f32 [B, N, F1]"""
    configs: Tensor
    """f32 [B, N, F2]"""
    edges: Tensor
    """f32 [B, N, N]: 1 where the row consumes the column"""
    mask: Tensor
    """f32 [B, N]: 1 for a real node"""
    counts: tuple[int, ...]
    """Number of configurations of each graph, in order"""


class _Scorer(nn.Module):
    """Maps a batch to the logarithms of milliseconds."""

    settings: FeatureSetSettings

    def scores(self, graph: FeatureGraph) -> np.ndarray:
        """Returns milliseconds of a graph's configurations: f64 [c]."""
        self.eval()
        with torch.no_grad():
            return self(make_batch([graph])).double().exp().numpy()


class FeatureSetModel(_Scorer):
    """Scores configurations by their milliseconds.

    The paper maps sums over nodes linearly to a run time. Here the network gives a positive cost
    for every column of the configuration and every product, which is multiplied with that amount,
    and the time is the sum over nodes.
    """

    architecture = "singh-gcn-feature-set"

    def __init__(self, settings: FeatureSetSettings):
        super().__init__()
        self.settings = settings
        self.node_columns = Standardise(settings.node_columns)
        self.config_columns = Standardise(settings.config_columns)
        widths = settings.invariant, settings.dependent
        inputs = settings.node_columns, settings.config_columns
        self.network = ScheduleNetwork(inputs, widths, settings.convolutions)
        self.bias = nn.Parameter(torch.zeros(1))
        amounts = settings.config_columns + len(settings.products)
        self.register_buffer("mean_amounts", torch.ones(amounts))
        self.costs = nn.Linear((settings.convolutions + 1) * sum(widths), amounts)
        nn.init.zeros_(self.costs.weight)
        nn.init.constant_(self.costs.bias, _FIRST_COST)

    def fit(self, graphs: Sequence[FeatureGraph]) -> None:
        """Computes the statistics of the training graphs, which scale the inputs."""
        nodes = np.concatenate([graph.node_features for graph in graphs])
        configs = [
            graph.config_features.reshape(-1, self.settings.config_columns) for graph in graphs
        ]
        self.node_columns.fit(torch.from_numpy(nodes))
        self.config_columns.fit(torch.from_numpy(np.concatenate(configs)))
        raw = (torch.from_numpy(graph.config_features).double() for graph in graphs)
        sums = torch.cat([self._amounts(of_graph).sum(1) for of_graph in raw])
        self.mean_amounts.copy_(sums.mean(0).clamp(min=1e-6))

    def forward(self, batch: FeatureBatch) -> Tensor:
        """Returns the logarithms of milliseconds: [B]."""
        static = self.network.invariant(self.node_columns(batch.nodes))
        dynamic = self.network.dependent(self.config_columns(batch.configs))
        static = static.expand(dynamic.shape[0], -1, -1)
        first = torch.cat([static, dynamic], -1) * batch.mask.unsqueeze(-1)
        levels = torch.cat(self.network(first, batch.edges, batch.mask), -1)
        costs = self.costs(levels).clamp(-20.0, 10.0).exp()
        times = (costs * (self._amounts(batch.configs) / self.mean_amounts)).sum(-1) * batch.mask
        return torch.log(times.sum(-1).clamp(min=1e-9)) + self.bias

    def _amounts(self, configs: Tensor) -> Tensor:
        """Returns the columns and their products, made positive: [B,N,amounts]."""
        products = [configs[..., list(columns)].prod(-1) for columns in self.settings.products]
        return torch.cat([configs, *(product.unsqueeze(-1) for product in products)], -1).abs()


_STEPS = 32
_STEP_WIDTH = 128


class StepModel(_Scorer):
    """Scores the order of configurations by the place of every column among its quantiles.

    A column is as many numbers as it has steps between quantiles, each 0 below the step and 1 above
    it, so that a layer can learn thresholds as trees do. The score is the sum over nodes.
    """

    architecture = "quantile-steps"

    def __init__(self, settings: FeatureSetSettings):
        super().__init__()
        self.settings = settings
        self.register_buffer("low", torch.zeros(settings.config_columns, _STEPS))
        self.register_buffer("width", torch.ones(settings.config_columns, _STEPS))
        self.layers = nn.Sequential(
            nn.Dropout(0.1),
            nn.Linear(settings.config_columns * _STEPS, _STEP_WIDTH),
            nn.ReLU(),
            nn.Dropout(0.25),
            nn.Linear(_STEP_WIDTH, 1),
        )

    def fit(self, graphs: Sequence[FeatureGraph]) -> None:
        """Computes the quantiles of the training graphs."""
        columns = self.settings.config_columns
        rows = np.concatenate([graph.config_features.reshape(-1, columns) for graph in graphs])
        quantiles = np.quantile(rows, np.linspace(0, 1, _STEPS + 1), 0).T
        self.low.copy_(torch.from_numpy(quantiles[:, :-1]))
        self.width.copy_(torch.from_numpy(np.diff(quantiles)).clamp(min=1e-6))

    def forward(self, batch: FeatureBatch) -> Tensor:
        """Returns scores [B], which are no run times."""
        places = ((batch.configs.unsqueeze(-1) - self.low) / self.width).clamp(0, 1)
        return (self.layers(places.flatten(-2)).squeeze(-1) * batch.mask).sum(-1)


class FeatureSetEnsemble(_Scorer):
    """The mean of models that differ in their seed, or kind: of the logarithms of milliseconds."""

    def __init__(self, members: Sequence[FeatureSetModel | StepModel]):
        super().__init__()
        self.settings = members[0].settings
        self.architecture = "+".join(dict.fromkeys(member.architecture for member in members))
        if len(members) > 1:
            self.architecture += f"-ensemble-{len(members)}"
        self.members = nn.ModuleList(members)

    def forward(self, batch: FeatureBatch) -> Tensor:
        """Returns what a member returns: [B]."""
        return torch.stack([member(batch) for member in self.members]).mean(0)


def make_batch(graphs: Sequence[FeatureGraph]) -> FeatureBatch:
    """Packs all configurations of some graphs."""
    most = max(len(graph.node_features) for graph in graphs)
    parts = zip(*(_padded(graph, most) for graph in graphs), strict=True)
    counts = tuple(len(graph.nanoseconds) for graph in graphs)
    return FeatureBatch(*map(torch.cat, parts), counts)


def _padded(graph: FeatureGraph, most: int) -> tuple[Tensor, ...]:
    count, nodes, columns = graph.config_features.shape
    static = np.zeros((most, graph.node_features.shape[1]), np.float32)
    mask = np.zeros(most)
    edges = np.zeros((most, most))
    configs = np.zeros((count, most, columns), np.float32)
    static[:nodes] = graph.node_features
    mask[:nodes] = 1
    configs[:, :nodes] = graph.config_features
    edges[graph.edges[:, 0], graph.edges[:, 1]] = 1
    shared = (torch.from_numpy(array).float() for array in (static, edges, mask))
    rows, relations, real = (tensor.expand(count, *tensor.shape) for tensor in shared)
    return rows, torch.from_numpy(configs), relations, real
