"""Strategies for candidates that are vectors of numbers."""

from typing import Protocol

import numpy as np

from hlorank_tune.xla.layout_space import Candidates, Space


class Strategy(Protocol):
    """The state of one search."""

    def ask(self) -> Candidates:
        """Returns the next candidates to evaluate."""
        ...

    def update(self, candidates: Candidates, costs: np.ndarray) -> None:
        """Takes the costs [candidates] of candidates that ``ask`` returned."""
        ...


class Random:
    """Independent random candidates."""

    def __init__(self, space: Space, random: np.random.Generator, batch: int):
        self._space = space
        self._random = random
        self._batch = batch

    def ask(self) -> Candidates:
        """Draws candidates."""
        return self._space.random(self._random, self._batch)

    def update(self, candidates: Candidates, costs: np.ndarray) -> None:
        """Ignores the costs."""


class Genetic:
    """A genetic search: each number of a child comes from one of two parents, then it is mutated.

    The first generation has children of the default, like TpuGraphs' ``default`` collection, and
    random candidates.
    """

    _PARENTS = 16
    _DRAWN = 0.25
    """Share of random candidates in the first generation."""

    def __init__(
        self, space: Space, random: np.random.Generator, batch: int, start: Candidates | None = None
    ):
        self._space = space
        self._random = random
        self._batch = batch
        self._parents = space.default[None] if start is None else start
        self._costs = np.full(len(self._parents), np.inf)
        self._is_first = True

    def ask(self) -> Candidates:
        """Returns the next generation."""
        drawn = round(self._batch * self._DRAWN) if self._is_first else 0
        self._is_first = False
        pairs = self._random.integers(0, len(self._parents), (2, self._batch - drawn))
        first, second = self._parents[pairs]
        crossed = np.where(self._random.random(first.shape) < 0.5, first, second)
        children = self._space.mutated(self._random, crossed)
        return np.concatenate([children, self._space.random(self._random, drawn)])

    def update(self, candidates: Candidates, costs: np.ndarray) -> None:
        """Keeps the best as parents."""
        # Of equal candidates the first is kept, whose cost is known.
        everyone = np.concatenate([candidates, self._parents])
        everyone, places = np.unique(everyone, axis=0, return_index=True)
        costs = np.concatenate([costs, self._costs])[places]
        best = np.argsort(costs, kind="stable")[: self._PARENTS]
        self._parents = everyone[best]
        self._costs = costs[best]
