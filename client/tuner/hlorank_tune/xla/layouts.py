"""The layouts of a program."""

from collections.abc import Sequence
from hashlib import sha256

import numpy as np

from hlorank import Configurations, Graph, HlorankError, Layouts
from hlorank_tune.measure.constrain import UNCHANGED, configurable_nodes, constrained
from hlorank_tune.xla.executing import ModuleCompiler
from hlorank_tune.xla.layout_space import Candidates, LayoutSpace
from hlorank_tune.xla.problem import Problem
from hlorank_tune.xla.program import Program, repeatable
from hlorank_tune.xla.strategies import Genetic, Random, Strategy


class LayoutProblem(Problem):
    """The search for layouts of a program."""

    compiler = ModuleCompiler
    clock = "monotonic"

    def __init__(self, program: Program):
        self.arguments = [np.asarray(argument) for argument in program.arguments]
        self._module = repeatable(program.module)
        self._nodes = configurable_nodes(self._module)
        if not self._nodes:
            raise HlorankError(
                f"'{program.name}' has no configurable layouts: its entry computation has no "
                "convolution, dot or reshape of 2 to 6 dimensions"
            )
        self.space = LayoutSpace(self._nodes)
        self.default = self.space.default
        self.reference_program = self._module.SerializeToString()
        numbers = [node.number for node in self._nodes]
        self.graph = Graph.from_hlo_proto(self.reference_program, configurable_nodes=numbers)

    def program(self, candidate: np.ndarray) -> bytes:
        """Returns the module with the layouts of a candidate."""
        if not candidate.any():
            return self.reference_program
        configuration = self.space.configuration(candidate)
        return constrained(self._module, self._nodes, configuration).SerializeToString()

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

    def identity(self) -> str:
        """Returns a digest of the program."""
        return sha256(self.reference_program).hexdigest()

    def named(
        self, name: str, random: np.random.Generator, batch: int, steps: int, start: np.ndarray
    ) -> Strategy:
        """Returns a new strategy of this name."""
        match name:
            case "random":
                return Random(self.space, random, batch)
            case "genetic":
                return Genetic(self.space, random, batch, start)
        raise HlorankError(f"there is no strategy '{name}' for layouts")
