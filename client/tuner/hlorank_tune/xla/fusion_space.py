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
