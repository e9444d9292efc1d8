"""The fusions of a program."""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from hlorank import Configurations, Fusions, Graph, HlorankError
from hlorank_tune.measure.fusion.kernels import configuration
from hlorank_tune.measure.fusion.limits import UNLIMITED
from hlorank_tune.measure.fusion.passes import CHOSEN_FUSION, DEFAULT
from hlorank_tune.measure.fusion.write import fused_program
from hlorank_tune.xla.executing import FusionCompiler
from hlorank_tune.xla.fusion_space import FusionAnnealing, FusionSpace
from hlorank_tune.xla.hardware import HardwareError
from hlorank_tune.xla.layout_space import Candidates
from hlorank_tune.xla.problem import Problem
from hlorank_tune.xla.program import FusionProgram, repeatable
from hlorank_tune.xla.strategies import Random, Strategy
from hlorank_tune.xla.worker import first_line


class FusionProblem(Problem):
    """The search for fusions of a program on XLA:CPU.

    The program itself is what XLA makes of it, with its own fusions and its library of matrix
    kernels. The default has the compiler's own fusions too, written out as those of candidates.
    """

    compiler = FusionCompiler
    clock = "process"
    """Programs run on one thread, whose processor time other processes change little."""

    def __init__(self, program: FusionProgram):
        self._name = program.name
        self.arguments = [np.asarray(argument) for argument in program.arguments]
        module = repeatable(program.module)
        self.reference_program = _compilation(module, DEFAULT).to_bytes()
        prepared = _prepared(module)
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

    def program(self, candidate: np.ndarray) -> bytes:
        """Returns the ``Compilation`` of a candidate."""
        return self._compilation(candidate).to_bytes() if candidate[0] else self.reference_program

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
        return sha256(self.reference_program + self._prepared).hexdigest()

    def named(
        self, name: str, random: np.random.Generator, batch: int, steps: int, start: np.ndarray
    ) -> Strategy:
        """Returns a new strategy of this name."""
        match name:
            case "random":
                return Random(self.space, random, batch)
            case "annealing":
                return FusionAnnealing(self.space, random, batch, steps, start)
        raise HlorankError(f"there is no strategy '{name}' for fusions")

    def save(self, candidate: np.ndarray, folder: Path) -> None:
        """Writes what ``hlorank_tune.measure.fusion.saved.load`` compiles and runs."""
        from hlorank_tune.measure.fusion.saved import save

        more = {"program": self._name, **self.written(candidate)}
        save(folder, self._compilation(candidate), more)

    def _compilation(self, candidate: np.ndarray) -> Any:
        # Bits of candidates are within the limits, and those of the compiler are kept as they are.
        chosen = configuration(self._graph, self.space.fused(candidate), UNLIMITED)
        return _compilation(fused_program(self._graph, chosen.kernels, self._name), CHOSEN_FUSION)


def _compilation(module: Any, disabled_passes: str) -> Any:
    from hlorank_tune.measure.fusion.compilation import Compilation

    return Compilation(module.SerializeToString(deterministic=True), disabled_passes)


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
        raise HardwareError(
            f"the program does not compile, or its fusions cannot be taken apart: "
            f"{first_line(error)}"
        ) from error
