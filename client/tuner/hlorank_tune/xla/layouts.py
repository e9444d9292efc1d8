"""The layouts of a program, as vectors of small numbers."""

from collections.abc import Sequence
from functools import cache
from itertools import permutations

import numpy as np

from hlorank import Configurations, Graph, HlorankError, Layouts
from hlorank_tune.measure.constrain import (
    MAX_RANK,
    UNCHANGED,
    ConfigurableNode,
    Configuration,
    configurable_nodes,
    constrained,
)
from hlorank_tune.measure.fusion.compilation import Compilation
from hlorank_tune.subject import Settings
from hlorank_tune.xla.program import Candidates, Problem, Program, compilation


class LayoutSpace:
    """Layouts of the configurable nodes: three numbers per node, for output and two operands.

    A number is 0 for the compiler's choice, else 1 plus the index of the tensor's minor-to-major
    order among the permutations of its dimensions.
    """

    def __init__(self, nodes: Sequence[ConfigurableNode]):
        self._ranks = np.array([node.ranks for node in nodes], np.int64).reshape(-1, 3)
        self._choices = np.array([_choices(rank) for rank in self._ranks.ravel()], np.int64)

    @property
    def default(self) -> np.ndarray:
        """The compiler's choice for every tensor."""
        return np.zeros(len(self._choices), np.int16)

    def random(self, random: np.random.Generator, count: int) -> Candidates:
        """Draws candidates that change a share of the nodes.

        Each candidate prefers one order per rank, so that neighbouring nodes often agree.
        """
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
        """Returns each candidate with new layouts at one to three nodes."""
        changed = candidates.copy()
        count = len(candidates)
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
        """Draws an order for every tensor that has several; 0 for the others."""
        orders = random.integers(1, np.maximum(self._choices, 2), shape)
        return np.where(self._choices > 1, orders, 0).astype(np.int16)

    def values(self, candidates: Candidates) -> np.ndarray:
        """Returns the values for ``hlorank.Layouts``: i8 [candidates, slots, 3, 6]."""
        values = np.empty((*candidates.shape, MAX_RANK), np.int8)
        for rank in np.unique(self._ranks):
            of_rank = self._ranks.ravel() == rank
            values[:, of_rank] = _orders_of_rank(int(rank))[candidates[:, of_rank]]
        return values.reshape(len(candidates), -1, 3, MAX_RANK)

    def candidates(self, values: np.ndarray) -> Candidates:
        """Converts values i8 [candidates, slots, 3, 6] back."""
        orders = values.reshape(-1, values.shape[-1]).tolist()
        numbers = [_number(tuple(d for d in order if d >= 0)) for order in orders]
        return np.array(numbers, np.int16).reshape(len(values), -1)

    def configuration(self, candidate: np.ndarray) -> Configuration:
        """Converts a candidate to the configuration of ``constrained``."""
        values = self.values(candidate[None])[0].tolist()
        return tuple(
            tuple(tuple(d for d in order if d >= 0) for order in entry) for entry in values
        )

    def candidate(self, configuration: Configuration) -> np.ndarray:
        """Converts a configuration to a candidate."""
        orders = (order for entry in configuration for order in entry)
        numbers = [_number(tuple(order)) for order in orders]
        return np.array(numbers, np.int16)


def _choices(rank: int) -> int:
    return len(_orders_of_rank(int(rank)))


@cache
def _orders_of_rank(rank: int) -> np.ndarray:
    """Returns the orders of a rank, filled up with -1: i8 [1 + rank!, 6].

    The first is empty: the compiler's choice. A vector has no other.
    """
    orders = [(), *permutations(range(rank))] if rank > 1 else [()]
    padded = [(*order, *[-1] * (MAX_RANK - len(order))) for order in orders]
    return np.array(padded, np.int8)


@cache
def _number(order: tuple[int, ...]) -> int:
    if not order:
        return 0
    padded = [*order, *[-1] * (MAX_RANK - len(order))]
    return int((_orders_of_rank(len(order)) == padded).all(axis=1).argmax())


class Genetic:
    """A genetic search: each number of a child comes from one of two parents, then it is mutated.

    The first generation has children of the default, like TpuGraphs' ``default`` collection, and
    random candidates.
    """

    _PARENTS = 16
    _DRAWN = 0.25
    """Share of random candidates in the first generation."""

    def __init__(
        self,
        space: LayoutSpace,
        random: np.random.Generator,
        batch: int,
        start: Sequence[np.ndarray],
    ):
        """``start`` are the first parents, each of which counts once."""
        self._space = space
        self._random = random
        self._batch = batch
        self._parents = np.unique(np.array(start), axis=0)
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


class LayoutProblem(Problem):
    """The search for layouts of a program."""

    clock = "monotonic"

    def __init__(self, program: Program):
        super().__init__(program)
        self._nodes = configurable_nodes(self._module)
        if not self._nodes:
            raise HlorankError(
                f"'{program.name}' has no configurable layouts: its entry computation has no "
                "convolution, dot or reshape of 2 to 6 dimensions"
            )
        self.space = LayoutSpace(self._nodes)
        self.default = self.space.default
        numbers = [node.number for node in self._nodes]
        module = self.reference_program.module
        self.graph = Graph.from_hlo_proto(module, configurable_nodes=numbers)

    def program(self, candidate: np.ndarray) -> Compilation:
        """Returns the module with the layouts of a candidate."""
        if not candidate.any():
            return self.reference_program
        configuration = self.space.configuration(candidate)
        return compilation(constrained(self._module, self._nodes, configuration))

    def configurations(self, candidates: Sequence[np.ndarray]) -> Layouts:
        """Converts candidates to layouts."""
        return Layouts(self.space.values(np.asarray(candidates)))

    def candidates(self, configurations: Configurations) -> Candidates:
        """Converts layouts of the same nodes back."""
        assert isinstance(configurations, Layouts)
        return self.space.candidates(configurations.values())

    def written(self, candidate: np.ndarray) -> dict[str, list[list[int]]]:
        """Maps node numbers to minor-to-major orders of output and operands, if any are set."""
        entries = zip(self._nodes, self.space.configuration(candidate), strict=True)
        return {
            str(node.number): [list(order) for order in entry]
            for node, entry in entries
            if entry != UNCHANGED
        }

    def read(self, written: dict[str, list[list[int]]]) -> np.ndarray:
        """Converts a candidate back from JSON."""
        entries = [written.get(str(node.number), UNCHANGED) for node in self._nodes]
        return self.space.candidate([tuple(map(tuple, entry)) for entry in entries])

    def strategy(
        self, settings: Settings, random: np.random.Generator, batch: int, steps: int, start: list
    ) -> Genetic:
        """Returns a new genetic search, which begins with the distinct candidates of ``start``."""
        return Genetic(self.space, random, batch, start)
