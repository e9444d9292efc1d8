"""What a training step draws: graphs, and configurations of each."""

from collections.abc import Sequence

import numpy as np

from hlorank_training.data.dataset import Measured
from hlorank_training.models.training_settings import TrainSettings


def draw_graphs(
    random: np.random.Generator, graphs: Sequence[Measured], settings: TrainSettings
) -> np.ndarray:
    """Returns the indices of an epoch's graphs, as many as there are, in the order of its steps.

    Every graph comes once; with ``even_families``, all families come equally often on average.
    """
    if not settings.even_families:
        return random.permutation(len(graphs))
    members: dict[str, list[int]] = {}
    for index, graph in enumerate(graphs):
        members.setdefault(graph.family, []).append(index)
    families = list(members.values())
    drawn = random.integers(len(families), size=len(graphs))
    return np.array([random.choice(families[family]) for family in drawn])


def draw_configurations(
    random: np.random.Generator, graph: Measured, settings: TrainSettings
) -> np.ndarray:
    """Returns the indices of a step's configurations of a graph, without repetition."""
    total = len(graph.runtimes)
    count = min(settings.configurations_per_graph, total)
    if not settings.favour_fast:
        return random.choice(total, count, replace=False)
    rank = np.argsort(np.argsort(graph.runtimes, stable=True))
    favoured = (total - rank) / total + random.gumbel(size=total)
    return np.argsort(-favoured)[:count]
