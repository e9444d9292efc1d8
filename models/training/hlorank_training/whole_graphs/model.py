"""What every whole-graph model has: a forward pass over the inputs of ``model.onnx``."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from hlorank_training.data.prepare import Form
from hlorank_training.whole_graphs.graph import Inputs, ServingRule, WholeGraph, read_whole_graph


def sum_over(h: Tensor, at: Tensor, of: Tensor, kept: Tensor | None = None) -> Tensor:
    """Sums h [C,N,W] of the nodes ``of`` [E] at the nodes ``at`` [E]: [C,N,W].

    If ``kept`` f32 [E] is given, only the edges where it is 1 count. A matrix [N,N] would be too
    large for a whole graph. This exports as ScatterND, which is fast.
    """
    nothing = torch.zeros_like(h)
    terms = h.index_select(1, of)
    return nothing.index_add(1, at, terms if kept is None else terms * kept.unsqueeze(-1))


def degree(at: Tensor, nodes: int, kept: Tensor | None = None) -> Tensor:
    """Counts how often each of ``nodes`` is in ``at`` [E], where ``kept`` is 1: f32 [N]."""
    nothing = torch.zeros(nodes, device=at.device)
    return nothing.index_add(
        0, at, torch.ones_like(at, dtype=torch.float) if kept is None else kept
    )


def mean_over(h: Tensor, at: Tensor, of: Tensor, kept: Tensor | None = None) -> Tensor:
    """Averages h [C,N,W] as ``sum_over`` sums it; 0 at nodes without edges: [C,N,W]."""
    total = sum_over(h, at, of, kept)
    return total / degree(at, h.shape[1], kept).clamp(min=1).unsqueeze(-1)


class CrossConfigurationAttention(nn.Module):
    """Concatenates channels with their product with the softmax over configurations.

    TGraph (2024), section 2.3.2, equation 6: elementwise, with one learned temperature.
    """

    def __init__(self):
        super().__init__()
        self.temperature = nn.Parameter(torch.tensor(0.5))

    def forward(self, x: Tensor) -> Tensor:
        """Maps x [C,N,W] to [C,N,2W]."""
        return torch.cat([x, x * torch.softmax(x / self.temperature, 0)], -1)


class WholeGraphModel(nn.Module):
    """Scores configurations of a graph that is not divided into segments.

    A subclass is created from its settings alone, and defines ``architecture`` and ``forward``:
    opcode i64 [N], features f32 [N,140], edges i64 [2,E] (consumers, producers) and a tuple of the
    configuration's inputs (configurable i64 [K] and config i64 [C,K,18] for layouts, config
    f32 [C,24] for tiles) to scores f32 [C].
    """

    kind = "graph"
    architecture: str
    """Name in the registry and in manifests."""
    settings: Any
    """A frozen dataclass that has ``task``: ``layout`` or ``tile``."""
    rule: ServingRule
    """What the server gives the model."""
    batch_dependent = False
    """Whether scores depend on the other configurations of a chunk."""

    @classmethod
    def form(cls, settings: Any) -> Form:
        """Returns the form in which a model with these settings takes graphs."""
        return Form(read_whole_graph)

    @classmethod
    def for_graphs(cls, settings: Any, graphs: Sequence[WholeGraph]) -> Self:
        """Returns an untrained model with the statistics of the training graphs."""
        model = cls(settings)
        model.fit(graphs)
        return model

    def fit(self, graphs: Sequence[WholeGraph]) -> None:
        """Computes the statistics that scale the inputs."""
        raise NotImplementedError

    def scores(self, graphs: Sequence[WholeGraph], chosen: Sequence[np.ndarray]) -> Tensor:
        """Returns scores f32 [c], with gradients, of the ``chosen`` configurations of each graph,
        one graph after the other."""
        score = self.training_scores if self.training else self._served_scores
        return torch.cat([score(*pair) for pair in zip(graphs, chosen, strict=True)])

    def training_scores(self, graph: WholeGraph, chosen: np.ndarray) -> Tensor:
        """Returns scores f32 [c] of ``chosen`` configurations, all in one chunk."""
        return self(*self.tensors(graph.inputs, graph.config[chosen]))

    def _served_scores(self, graph: WholeGraph, chosen: np.ndarray) -> Tensor:
        """Returns scores f32 [c] as the server computes them, chunk by chunk."""

        def score(chunk: np.ndarray) -> np.ndarray:
            return self.training_scores(graph, chosen[chunk]).detach().cpu().numpy()

        return torch.from_numpy(self.rule.mean_scores(len(chosen), score))

    def tensors(self, inputs: Inputs, config: np.ndarray) -> tuple:
        """Returns the inputs of ``forward`` on the model's device."""
        device = next(self.parameters()).device
        given = {name: torch.from_numpy(array).to(device) for name, array in inputs.items()}
        config = torch.from_numpy(config).to(device)
        configuration = (config,)
        if "configurable" in given:
            configuration = (given.pop("configurable"), config.to(torch.int64))
        return *given.values(), configuration


def node_rows(graphs: Sequence[WholeGraph]) -> Tensor:
    """Returns the raw features of all nodes: f32 [n,140]."""
    return torch.from_numpy(np.concatenate([graph.inputs["features"] for graph in graphs]))
