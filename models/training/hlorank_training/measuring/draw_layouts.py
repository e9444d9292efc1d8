"""Draws layout configurations as TpuGraphs does: at random, and by a genetic search."""

from collections.abc import Sequence

import numpy as np
from hlorank_tune.measure.constrain import (
    MAX_RANK,
    UNCHANGED,
    ConfigurableNode,
    Configuration,
    Permutation,
)


def random_configuration(
    nodes: list[ConfigurableNode], random: np.random.Generator
) -> Configuration:
    """Draws layouts for a random share of the nodes.

    Each configuration prefers one order per rank, so that neighbouring nodes often agree.
    """
    share = random.choice([0.05, 0.15, 0.3, 0.6, 1.0])
    coherence = random.choice([0.0, 0.5, 0.9])
    preferred = {rank: _permutation(rank, random) for rank in range(2, MAX_RANK + 1)}

    def pick(rank: int) -> Permutation:
        if rank < 2 or random.random() < 0.3:
            return ()
        return preferred[rank] if random.random() < coherence else _permutation(rank, random)

    return tuple(
        tuple(pick(rank) for rank in node.ranks) if random.random() < share else UNCHANGED
        for node in nodes
    )


def _permutation(rank: int, random: np.random.Generator) -> Permutation:
    return tuple(int(dimension) for dimension in random.permutation(rank))


def offspring(
    parents: Sequence[Configuration], nodes: list[ConfigurableNode], random: np.random.Generator
) -> Configuration:
    """Returns a child of two random parents with one to three mutated nodes."""
    first, second = (parents[i] for i in random.integers(0, len(parents), 2))
    child = [a if random.random() < 0.5 else b for a, b in zip(first, second, strict=True)]
    for index in random.integers(0, len(nodes), random.integers(1, 4)):
        child[index] = tuple(_mutated(rank, random) for rank in nodes[index].ranks)
    return tuple(child)


def _mutated(rank: int, random: np.random.Generator) -> Permutation:
    return () if rank < 2 or random.random() < 0.4 else _permutation(rank, random)
