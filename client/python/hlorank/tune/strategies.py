"""How a search goes on: each strategy asks for the costs of candidates, and is told them.

The costs are predictions where a model is asked, and measured times where none is. Lower is
better, infinite is a candidate that does not work.
"""

from typing import Protocol

import numpy as np

from hlorank.tune.space import Candidates, Space, TileSpace


class Strategy(Protocol):
    """One search."""

    def ask(self) -> Candidates:
        """The candidates whose costs it wants next; none once it knows everything."""
        ...

    def tell(self, candidates: Candidates, costs: np.ndarray) -> None:
        """The costs [candidates] of what it asked for."""
        ...


class Exhaustive:
    """Every candidate, in a random order."""

    def __init__(self, space: TileSpace, random: np.random.Generator, batch: int):
        self._left = random.permutation(space.everything())
        self._batch = batch

    def ask(self) -> Candidates:
        """The next ones."""
        batch, self._left = self._left[: self._batch], self._left[self._batch :]
        return batch

    def tell(self, candidates: Candidates, costs: np.ndarray) -> None:
        """Changes nothing."""


class Random:
    """Draws that owe nothing to what was seen."""

    def __init__(self, space: Space, random: np.random.Generator, batch: int):
        self._space, self._random, self._batch = space, random, batch

    def ask(self) -> Candidates:
        """New draws."""
        return self._space.random(self._random, self._batch)

    def tell(self, candidates: Candidates, costs: np.ndarray) -> None:
        """Changes nothing."""


class Genetic:
    """Children of the best so far: each number from one of two parents, then a small change.

    It begins with children of the default, as TpuGraphs' ``default`` collection does, and draws.
    """

    _PARENTS = 16
    _DRAWN = 0.25
    """Of the first batch."""

    def __init__(
        self, space: Space, random: np.random.Generator, batch: int, start: Candidates | None = None
    ):
        self._space, self._random, self._batch = space, random, batch
        self._parents = space.default[None] if start is None else start
        self._costs = np.full(len(self._parents), np.inf)
        self._is_first = True

    def ask(self) -> Candidates:
        """The next generation."""
        drawn = round(self._batch * self._DRAWN) if self._is_first else 0
        self._is_first = False
        pairs = self._random.integers(0, len(self._parents), (2, self._batch - drawn))
        first, second = self._parents[pairs]
        crossed = np.where(self._random.random(first.shape) < 0.5, first, second)
        children = self._space.mutated(self._random, crossed)
        return np.concatenate([children, self._space.random(self._random, drawn)])

    def tell(self, candidates: Candidates, costs: np.ndarray) -> None:
        """Keeps the best as parents."""
        # Of those that are equal the first is kept: the one whose cost is known.
        everyone = np.concatenate([candidates, self._parents])
        everyone, places = np.unique(everyone, axis=0, return_index=True)
        costs = np.concatenate([costs, self._costs])[places]
        best = np.argsort(costs, kind="stable")[: self._PARENTS]
        self._parents, self._costs = everyone[best], costs[best]


class Annealing:
    """Chains of small changes; a worse one is taken the rarer the later and the worse it is."""

    _LEAST_SCALE = 1e-12
    """Where all costs are equal."""
    _HOT, _COLD = 1.0, 0.02
    """First and last temperature, in standard deviations of the first costs that differ."""

    def __init__(
        self,
        space: Space,
        random: np.random.Generator,
        batch: int,
        steps: int,
        start: Candidates | None = None,
    ):
        """``batch`` chains; the temperature falls over ``steps`` of them, and stays then."""
        self._space, self._random = space, random
        begin = space.default[None] if start is None else start
        self._current = begin[np.arange(batch) % len(begin)]
        self._costs = np.full(batch, np.inf)
        self._temperatures = np.geomspace(self._HOT, self._COLD, max(steps, 2)).tolist()
        self._scale = 0.0

    def ask(self) -> Candidates:
        """A change to every chain."""
        return self._space.mutated(self._random, self._current)

    def tell(self, candidates: Candidates, costs: np.ndarray) -> None:
        """Moves the chains."""
        count = len(candidates)
        finite = costs[np.isfinite(costs)]
        self._scale = self._scale or (float(np.std(finite)) if len(finite) else 0.0)
        temperatures = self._temperatures
        temperature = temperatures.pop(0) if len(temperatures) > 1 else temperatures[0]
        # Infinite costs: a chain leaves what does not work, and never goes there.
        with np.errstate(invalid="ignore"):
            worse = np.maximum(costs - self._costs[:count], 0)
        worse[~np.isfinite(costs)] = np.inf
        scale = max(temperature * self._scale, self._LEAST_SCALE)
        taken = self._random.random(count) < np.exp(-worse / scale)
        self._current[:count][taken] = candidates[taken]
        self._costs[:count][taken] = costs[taken]
