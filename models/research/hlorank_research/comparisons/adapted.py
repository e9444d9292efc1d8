"""How well a server ranks a graph's configurations after it has learned from some of them."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from hlorank import Adapt, Client, Graph, Layouts

from hlorank_research.whole_graphs.graph import read_whole_graph
from hlorank_training.data.dataset import distinct
from hlorank_training.metrics.ranking import kendall_tau

MEASURED = 300
"""Configurations that are measured, which is the most that a call takes."""
_DRAWS = 3
_SECONDS = 1e-9


@dataclass(frozen=True)
class Adapted:
    """A layout graph at a server, whose default model adapts to measured configurations."""

    client: Client
    features: Path

    def tau(self, rest: np.ndarray, test: np.ndarray) -> float:
        """Returns Kendall's tau on ``test``, both i64, after ``MEASURED`` random ones of ``rest``.

        It is a mean over three draws.
        """
        return float(np.mean([self._tau(draw, rest, test) for draw in range(_DRAWS)]))

    def _tau(self, draw: int, rest: np.ndarray, test: np.ndarray) -> float:
        measured = np.random.default_rng(draw).choice(rest, MEASURED, replace=False)
        graph = distinct(read_whole_graph(self.features, self.features.stem))
        seconds = graph.runtimes * _SECONDS
        adapt = Adapt("within-graph", Layouts(graph.config[measured]), seconds[measured])
        ranking = self.client.rank(
            self._graph(), Layouts(graph.config[test]), with_scores=True, adapt=adapt
        )
        return kendall_tau(np.array(ranking.scores), graph.runtimes[test])

    def _graph(self) -> Graph:
        with np.load(self.features) as arrays:
            nodes = arrays["node_opcode"], arrays["node_feat"], arrays["edge_index"]
            configurable = arrays["node_config_ids"]
        return Graph.from_features(*nodes, task="layout", configurable_nodes=configurable)
