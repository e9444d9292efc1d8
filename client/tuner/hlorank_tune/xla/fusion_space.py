"""The fusions of a program as vectors of bits."""

from collections.abc import Iterable

import numpy as np

from hlorank_tune.measure.fusion import draw
from hlorank_tune.measure.fusion.graph import FusionGraph
from hlorank_tune.measure.fusion.kernels import configuration
from hlorank_tune.measure.fusion.limits import DEFAULT
from hlorank_tune.xla.layout_space import Candidates

_CHANGES = (0.5, 0.3, 0.2)
"""Probabilities of a change of one slot, of a few slots, and of all slots of one opcode."""
_FEW_SLOTS = (2, 9)
"""Bounds of the number of slots of a change of a few; the second is not included."""


class FusionSpace:
    """A one, and for each slot whether it is fused; zeros alone are the program as XLA compiles it.

    Kernels of drawn candidates are within the limits beyond which XLA:CPU takes seconds to compile,
    and which are stricter than those of a server: a slot that breaks them is written instead.
    """

    def __init__(self, graph: FusionGraph, compilers: Iterable[int]):
        """``compilers`` are the nodes that the compiler fuses."""
        self._graph = graph
        self._compilers = self._candidate(frozenset(compilers))
        opcodes = np.array([graph.opcode(slot) for slot in graph.slots])
        self._of_opcode = [opcodes == opcode for opcode in sorted(set(opcodes.tolist()))]

    @property
    def default(self) -> np.ndarray:
        """The program as XLA compiles it."""
        return np.zeros(1 + len(self._graph.slots), np.int16)

    @property
    def compilers(self) -> np.ndarray:
        """The compiler's own fusions, as nearly as kernels with one output can have them."""
        return self._compilers.copy()

    def random(self, random: np.random.Generator, count: int) -> Candidates:
        """Draws independent candidates, each with a rate of fused slots of its own."""
        drawn = [self._candidate(draw.drawn(self._graph, random).fused) for _ in range(count)]
        return np.array(drawn, np.int16).reshape(count, 1 + len(self._graph.slots))

    def mutated(self, random: np.random.Generator, candidates: Candidates) -> Candidates:
        """Returns each candidate with a change; the program itself has the compiler's fusions."""
        changed = self.chosen(candidates)
        for row in changed:
            self._change(random, row[1:])
            row[:] = self._repaired(row)
        return changed

    def chosen(self, candidates: Candidates) -> Candidates:
        """Returns a copy with the compiler's fusions in place of the program itself."""
        return np.where(candidates[:, :1] == 0, self._compilers, candidates)

    def bits(self, candidates: Candidates) -> np.ndarray:
        """Returns whether each slot is fused: bool [candidates, slots]."""
        return self.chosen(candidates)[:, 1:] != 0

    def fused(self, candidate: np.ndarray) -> frozenset[int]:
        """Returns the fused nodes of one candidate."""
        (bits,) = self.bits(candidate[None])
        return frozenset(self._graph.slots[slot] for slot in bits.nonzero()[0])

    def _candidate(self, fused: frozenset[int]) -> np.ndarray:
        return np.array([1, *(slot in fused for slot in self._graph.slots)], np.int16)

    def _repaired(self, candidate: np.ndarray) -> np.ndarray:
        allowed = configuration(self._graph, self.fused(candidate), DEFAULT)
        return self._candidate(allowed.fused)

    def _change(self, random: np.random.Generator, bits: np.ndarray) -> None:
        one, few, _ = np.cumsum(_CHANGES)
        drawn = random.random()
        if drawn < few:
            count = 1 if drawn < one else min(random.integers(*_FEW_SLOTS), len(bits))
            bits[random.choice(len(bits), count, replace=False)] ^= 1
        else:
            alike = self._of_opcode[random.integers(len(self._of_opcode))]
            # Those of an opcode that differ all take the rarer value.
            bits[alike] = 2 * np.count_nonzero(bits[alike]) <= np.count_nonzero(alike)


class FusionAnnealing:
    """Chains from what is given and, at least half of them, from random candidates.

    A step evaluates several neighbours of each chain's candidate at once, to which the chain then
    moves one after the other. A move for the worse has a probability that falls with its size and
    with time.
    """

    _NEIGHBOURS = 8
    """Neighbours of one chain in a step."""
    _HOT = 0.05
    _COLD = 0.001
    """First and last temperature, relative to the cost of the first start."""

    def __init__(
        self,
        space: FusionSpace,
        random: np.random.Generator,
        batch: int,
        steps: int,
        start: Candidates,
    ):
        """Evaluates ``batch`` candidates in each of ``steps`` steps."""
        self._space = space
        self._random = random
        chains = max(1, batch // self._NEIGHBOURS)
        given = space.chosen(start[: -(-chains // 2)])
        self._current = np.concatenate([given, space.random(random, chains - len(given))])
        self._costs = np.full(chains, np.inf)
        self._temperatures = np.geomspace(self._HOT, self._COLD, max(steps, 2)).tolist()
        self._scale = 0.0
        self._chains = np.arange(chains)

    def ask(self) -> Candidates:
        """Returns the starts, and then neighbours of every chain's candidate."""
        if not self._scale:
            return self._current.copy()
        self._chains = np.repeat(np.arange(len(self._current)), self._NEIGHBOURS)
        return self._space.mutated(self._random, self._current[self._chains])

    def update(self, candidates: Candidates, costs: np.ndarray) -> None:
        """Moves the chains."""
        temperature = self._temperature(costs)
        for chain, candidate, cost in zip(self._chains, candidates, costs.tolist(), strict=False):
            # An infinite cost is never better, and every finite one is better than it.
            worse = max(cost - self._costs[chain], 0.0) if np.isfinite(cost) else np.inf
            if self._random.random() < np.exp(-worse / temperature):
                self._current[chain] = candidate
                self._costs[chain] = cost

    def _temperature(self, costs: np.ndarray) -> float:
        temperatures = self._temperatures
        if self._scale:
            relative = temperatures.pop(0) if len(temperatures) > 1 else temperatures[0]
            return relative * self._scale
        finite = costs[np.isfinite(costs)]
        self._scale = float(finite[0]) if len(finite) else 1.0
        return temperatures[0] * self._scale
