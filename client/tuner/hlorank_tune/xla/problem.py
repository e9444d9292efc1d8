"""A program of XLA with candidates that are vectors of small numbers."""

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from hlorank import Graph
from hlorank_tune.subject import Settings, Subject
from hlorank_tune.xla.strategies import Strategy
from hlorank_tune.xla.worker import ProgramCompiler


class Problem(Subject[np.ndarray]):
    """A user's program and its candidates, which are compiled in the measuring process."""

    graph: Graph
    space: Any
    reference_program: bytes
    """The user's program, as ``compiler`` takes it."""
    compiler: type[ProgramCompiler]
    """Compiles the programs in the measuring process; made of ``arguments``."""
    arguments: Sequence[np.ndarray]
    clock: str
    """What run times are: ``monotonic`` or ``process``, as in a measurement's protocol."""

    @property
    def reference(self) -> np.ndarray:
        """The program itself."""
        return self.space.default

    @abstractmethod
    def program(self, candidate: np.ndarray) -> bytes:
        """Returns a candidate's program, as ``compiler`` takes it; raises if there is none."""

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
