"""Programs of XLA with candidates that are vectors of small numbers, and how they are searched."""

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from hlorank import Graph
from hlorank_tune.measure.fusion.compilation import Compilation
from hlorank_tune.subject import Settings, Strategy, Subject

Candidates = np.ndarray
"""i16 [candidates, numbers]"""


class Random:
    """Independent random candidates."""

    def __init__(self, space: Any, random: np.random.Generator, batch: int):
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
        self, space: Any, random: np.random.Generator, batch: int, start: Candidates | None = None
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


class Problem(Subject[np.ndarray]):
    """A user's program and its candidates, which are compiled in the measuring process."""

    graph: Graph
    space: Any
    """Has the candidate of the untuned program as ``default``, and draws and mutates candidates."""
    reference_program: Compilation
    """The user's program."""
    arguments: Sequence[np.ndarray]
    clock: str
    """What run times are: ``monotonic`` or ``process``, as in a measurement's protocol."""

    @property
    def reference(self) -> np.ndarray:
        """The program itself."""
        return self.space.default

    @abstractmethod
    def program(self, candidate: np.ndarray) -> Compilation:
        """Returns a candidate's program; raises if there is none."""

    @abstractmethod
    def identity(self) -> str:
        """Returns a digest of everything that the results depend on."""

    @abstractmethod
    def named(
        self, name: str, random: np.random.Generator, batch: int, steps: int, start: np.ndarray
    ) -> Strategy:
        """Returns a new strategy of this name."""

    def strategy(
        self, settings: Settings, random: np.random.Generator, batch: int, steps: int, start: list
    ) -> Strategy:
        """Returns a new strategy, which begins with the distinct candidates of ``start``."""
        begin = np.unique(np.array(start), axis=0)
        return self.named(settings.strategy, random, batch, steps, begin)

    def key(self, candidate: np.ndarray) -> Hashable:
        """Returns the numbers as bytes."""
        return candidate.tobytes()
