"""What a search may choose from: configurations as vectors of small numbers."""

from collections.abc import Sequence
from functools import cache
from itertools import permutations
from typing import Protocol

import numpy as np

from hlorank.measure.constrain import MAX_RANK, ConfigurableNode, Configuration

Candidates = np.ndarray
"""i16 [candidates, numbers]"""


class Space(Protocol):
    """Draws candidates, and makes new ones of others."""

    @property
    def default(self) -> np.ndarray:
        """i16 [numbers]: what is chosen where nobody tunes."""
        ...

    def random(self, random: np.random.Generator, count: int) -> Candidates:
        """Candidates that owe nothing to others."""
        ...

    def mutated(self, random: np.random.Generator, candidates: Candidates) -> Candidates:
        """Each with a small change."""
        ...


class LayoutSpace:
    """Layouts of the configurable nodes: three numbers a node, for output and first two operands.

    A number is 0 for the compiler's choice, else 1 and the place of the tensor's minor-to-major
    order among the permutations of its dimensions.
    """

    def __init__(self, nodes: Sequence[ConfigurableNode]):
        self._ranks = np.array([node.ranks for node in nodes], np.int64).reshape(-1, 3)
        self._choices = np.array([_choices(rank) for rank in self._ranks.ravel()], np.int64)

    @property
    def default(self) -> np.ndarray:
        """The compiler's choice everywhere."""
        return np.zeros(len(self._choices), np.int16)

    def random(self, random: np.random.Generator, count: int) -> Candidates:
        """Each changes a share of the nodes; an order that each prefers lets neighbours agree."""
        shape = (count, len(self._choices))
        drawn = self._orders(random, shape)
        share = random.choice([0.05, 0.15, 0.3, 0.6, 1.0], (count, 1))
        coherence = random.choice([0.0, 0.5, 0.9], (count, 1))
        preferred = np.stack(
            [random.integers(1, _choices(rank), count) for rank in range(2, MAX_RANK + 1)], axis=1
        )
        of_rank = preferred[:, np.clip(self._ranks.ravel(), 2, MAX_RANK) - 2]
        drawn = np.where(random.random(shape) < coherence, of_rank, drawn)
        nodes = random.random((count, len(self._ranks))) < share
        kept = np.repeat(nodes, 3, axis=1) & (random.random(shape) >= 0.3) & (self._choices > 1)
        return np.where(kept, drawn, 0).astype(np.int16)

    def mutated(self, random: np.random.Generator, candidates: Candidates) -> Candidates:
        """Each with new layouts at one to three nodes."""
        changed, count = candidates.copy(), len(candidates)
        if not len(self._ranks):
            return changed
        drawn = self._orders(random, candidates.shape)
        drawn[random.random(drawn.shape) < 0.4] = 0
        nodes = random.integers(0, len(self._ranks), (count, 3))
        used = random.integers(1, 4, count)
        for place in range(3):
            rows = np.flatnonzero(used > place)
            columns = 3 * nodes[rows, place, None] + np.arange(3)
            changed[rows[:, None], columns] = drawn[rows[:, None], columns]
        return changed

    def _orders(self, random: np.random.Generator, shape: tuple[int, int]) -> Candidates:
        """An order for every tensor that has several; 0 for the others."""
        orders = random.integers(1, np.maximum(self._choices, 2), shape)
        return np.where(self._choices > 1, orders, 0).astype(np.int16)

    def values(self, candidates: Candidates) -> np.ndarray:
        """i8 [candidates, slots, 3, 6], as ``hlorank.Layouts`` takes them."""
        values = np.empty((*candidates.shape, MAX_RANK), np.int8)
        for rank in np.unique(self._ranks):
            of_rank = self._ranks.ravel() == rank
            values[:, of_rank] = _orders_of_rank(int(rank))[candidates[:, of_rank]]
        return values.reshape(len(candidates), -1, 3, MAX_RANK)

    def configuration(self, candidate: np.ndarray) -> Configuration:
        """What ``constrained`` takes."""
        values = self.values(candidate[None])[0].tolist()
        return tuple(
            tuple(tuple(d for d in order if d >= 0) for order in entry) for entry in values
        )

    def candidate(self, configuration: Configuration) -> np.ndarray:
        """The numbers of a configuration."""
        orders = (order for entry in configuration for order in entry)
        numbers = [_place(tuple(order)) for order in orders]
        return np.array(numbers, np.int16)


def _choices(rank: int) -> int:
    return len(_orders_of_rank(int(rank)))


@cache
def _orders_of_rank(rank: int) -> np.ndarray:
    """i8 [1 + rank!, 6]: nothing, then every permutation, ended with -1; a vector has no choice."""
    orders = [(), *permutations(range(rank))] if rank > 1 else [()]
    padded = [(*order, *[-1] * (MAX_RANK - len(order))) for order in orders]
    return np.array(padded, np.int8)


@cache
def _place(order: tuple[int, ...]) -> int:
    if not order:
        return 0
    padded = [*order, *[-1] * (MAX_RANK - len(order))]
    return int((_orders_of_rank(len(order)) == padded).all(axis=1).argmax())


class TileSpace:
    """The tiles of a list, by their place in it; the first is the default."""

    def __init__(self, tiles: int):
        self._tiles = tiles

    @property
    def default(self) -> np.ndarray:
        """The first tile."""
        return np.zeros(1, np.int16)

    def everything(self) -> Candidates:
        """Every tile, in the list's order."""
        return np.arange(self._tiles, dtype=np.int16)[:, None]
