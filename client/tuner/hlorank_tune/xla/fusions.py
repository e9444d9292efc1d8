"""The fusions of a program, as vectors of bits."""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from hlorank import Configurations, Fusions, Graph, HlorankError
from hlorank_tune.measure.fusion.compilation import CHOSEN_FUSION, DEFAULT, Compilation
from hlorank_tune.measure.fusion.graph import FusionGraph
from hlorank_tune.measure.fusion.kernels import UNLIMITED, configuration, drawn
from hlorank_tune.measure.fusion.write import fused_program
from hlorank_tune.measure.host import first_line
from hlorank_tune.subject import ProgramError, Settings
from hlorank_tune.xla.program import Candidates, Problem, Program, compilation

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
        self._of_opcode = [opcodes == opcode for opcode in np.unique(opcodes)]

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
        candidates = [self._candidate(drawn(self._graph, random).fused) for _ in range(count)]
        return np.array(candidates, np.int16).reshape(count, 1 + len(self._graph.slots))

    def mutated(self, random: np.random.Generator, candidates: Candidates) -> Candidates:
        """Returns each candidate with a change; the program itself has the compiler's fusions."""
        changed = self.chosen(candidates)
        for row in changed:
            self._change(random, row[1:])
            # Within the limits.
            row[:] = self._candidate(configuration(self._graph, self.fused(row)).fused)
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


class FusionProblem(Problem):
    """The search for fusions of a program on XLA:CPU.

    The program itself is what XLA makes of it, with its own fusions and its library of matrix
    kernels. The default has the compiler's own fusions too, written out as those of candidates.
    """

    clock = "process"
    """Programs run on one thread, whose processor time other processes change little."""

    def __init__(self, program: Program):
        super().__init__(program, DEFAULT)
        self._name = program.name
        prepared = _prepared(self._module)
        self._graph = prepared.graph
        if not self._graph.slots:
            raise HlorankError(
                f"'{program.name}' has no fusions to choose: none of its {len(self._graph.nodes)} "
                "instructions can be computed inside the kernel of another one"
            )
        self._prepared = self._graph.module.SerializeToString(deterministic=True)
        self.graph = Graph.from_hlo_proto(self._prepared, task="fusion")
        self.space = FusionSpace(self._graph, prepared.compilers.fused)
        self.default = self.space.compilers

    def program(self, candidate: np.ndarray) -> Compilation:
        """Returns the program with the fusions of a candidate."""
        return self._compilation(candidate) if candidate[0] else self.reference_program

    def is_ranked(self, candidate: np.ndarray) -> bool:
        """Returns False for the program itself, whose kernels may be a library's."""
        return bool(candidate[0])

    def configurations(self, candidates: Sequence[np.ndarray]) -> Fusions:
        """Converts candidates to the configurations that the model ranks."""
        return Fusions(self.space.bits(np.asarray(candidates)))

    def candidates(self, configurations: Configurations) -> Candidates:
        """Converts fusions of the same slots back."""
        assert isinstance(configurations, Fusions)
        bits = configurations.values()[:, : len(self._graph.slots)]
        return np.concatenate([np.ones((len(bits), 1)), bits], axis=1).astype(np.int16)

    def written(self, candidate: np.ndarray) -> dict[str, list[int]]:
        """Returns the numbers of the fused nodes; nothing for the program itself."""
        if not candidate[0]:
            return {}
        return {"fused_nodes": np.array(self._graph.slot_numbers)[candidate[1:] != 0].tolist()}

    def read(self, written: dict[str, list[int]]) -> np.ndarray:
        """Converts a candidate back from JSON."""
        if not written:
            return self.space.default
        fused = np.isin(self._graph.slot_numbers, written["fused_nodes"])
        return np.array([1, *fused], np.int16)

    def node_name(self, number: int) -> str:
        """Returns name and opcode of a node, by its position in the flattened instruction list."""
        for computation in self._graph.module.computations:
            if number < len(computation.instructions):
                instruction = computation.instructions[number]
                return f"{instruction.name} ({instruction.opcode})"
            number -= len(computation.instructions)
        raise IndexError("the program has no such node")

    def identity(self) -> str:
        """Returns a digest of the program and of its form before fusion."""
        return sha256(self.reference_program.module + self._prepared).hexdigest()

    def strategy(
        self, settings: Settings, random: np.random.Generator, batch: int, steps: int, start: list
    ) -> FusionAnnealing:
        """Returns a new annealing, which begins with the distinct candidates of ``start``."""
        return FusionAnnealing(self.space, random, batch, steps, np.unique(start, axis=0))

    def save(self, candidate: np.ndarray, folder: Path) -> None:
        """Writes what ``hlorank_tune.measure.fusion.compilation.load`` compiles and runs."""
        more = {"program": self._name, **self.written(candidate)}
        self._compilation(candidate).save(folder, more)

    def _compilation(self, candidate: np.ndarray) -> Compilation:
        # Bits of candidates are within the limits, and those of the compiler are kept as they are.
        chosen = configuration(self._graph, self.space.fused(candidate), UNLIMITED)
        return compilation(fused_program(self._graph, chosen.kernels, self._name), CHOSEN_FUSION)


def _prepared(module: Any) -> Any:
    from hlorank_tune.measure.execute import backend
    from hlorank_tune.measure.fusion.prepare import prepare

    if backend() != "xla:cpu":
        raise HlorankError(
            f"fusions are chosen for XLA:CPU, but jax compiles for {backend()}; "
            "set the environment variable JAX_PLATFORMS=cpu"
        )
    try:
        return prepare(module)
    # jaxlib raises its own types.
    except Exception as error:
        raise ProgramError(
            f"the program does not compile, or its fusions cannot be taken apart: "
            f"{first_line(error)}"
        ) from error
