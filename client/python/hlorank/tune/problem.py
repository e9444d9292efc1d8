"""The search problems, which convert candidates for the model and for the machine."""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Protocol

import numpy as np

from hlorank.configurations import Configurations
from hlorank.errors import HlorankError
from hlorank.graph import Graph
from hlorank.layouts import Layouts
from hlorank.measure.constrain import UNCHANGED, configurable_nodes, constrained
from hlorank.measure.tuning_data import Tile
from hlorank.task import Task
from hlorank.tiles import Tiles
from hlorank.tune.program import Program, TiledKernel, repeatable
from hlorank.tune.space import Candidates, LayoutSpace, TileSpace
from hlorank.tune.worker import Compiler
from hlorank.tune.xla import XlaCompiler


class Problem(Protocol):
    """A user's program and its candidates.

    The program itself is the candidate ``space.default``, which is measured first.
    """

    task: Task
    name: str
    graph: Graph
    space: Any
    subject: str
    """What the user calls it in messages: program or function."""
    default: np.ndarray
    """The candidate of the compiler's or kernel's default; may be the program itself."""
    reference: bytes
    """The user's program, as ``compiler`` takes it."""
    compiler: type[Compiler]
    """Compiles the programs in the measuring process; made of ``arguments``."""
    arguments: Sequence[np.ndarray]
    clock: str
    """What run times are: ``monotonic`` or ``process``, as in a measurement's protocol."""

    def program(self, candidate: np.ndarray) -> bytes:
        """Returns a candidate's program, as ``compiler`` takes it; raises if there is none."""
        ...

    def is_ranked(self, candidate: np.ndarray) -> bool:
        """Returns whether a candidate is a configuration that a model can rank."""
        ...

    def configurations(self, candidates: Candidates) -> Configurations:
        """Converts candidates to the configurations that the model ranks."""
        ...

    def candidates(self, configurations: Configurations) -> Candidates:
        """Converts configurations of the graph back; may leave out those that it cannot."""
        ...

    def written(self, candidate: np.ndarray) -> Any:
        """Converts a candidate to JSON, for people and for ``read``."""
        ...

    def read(self, written: Any) -> np.ndarray:
        """Converts a candidate back from JSON."""
        ...

    def identity(self) -> str:
        """Returns a digest of everything that the results depend on."""
        ...


class LayoutProblem:
    """The search for layouts of a program."""

    task: Task = "layout"
    subject = "program"
    compiler = XlaCompiler
    clock = "monotonic"

    def __init__(self, program: Program):
        self.name = program.name
        self.arguments = [np.asarray(argument) for argument in program.arguments]
        self._module = repeatable(program.module)
        self._nodes = configurable_nodes(self._module)
        if not self._nodes:
            raise HlorankError(
                f"'{self.name}' has no configurable layouts: its entry computation has no "
                "convolution, dot or reshape of 2 to 6 dimensions"
            )
        self.space = LayoutSpace(self._nodes)
        self.default = self.space.default
        self.reference = self._module.SerializeToString()
        numbers = [node.number for node in self._nodes]
        self.graph = Graph.from_hlo_proto(self.reference, configurable_nodes=numbers)

    def program(self, candidate: np.ndarray) -> bytes:
        if not candidate.any():
            return self.reference
        configuration = self.space.configuration(candidate)
        return constrained(self._module, self._nodes, configuration).SerializeToString()

    def is_ranked(self, candidate: np.ndarray) -> bool:
        """Returns True: the program itself has the compiler's layouts."""
        return True

    def configurations(self, candidates: Candidates) -> Layouts:
        return Layouts(self.space.values(candidates))

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
        entries = [written.get(str(node.number), UNCHANGED) for node in self._nodes]
        return self.space.candidate([tuple(map(tuple, entry)) for entry in entries])

    def identity(self) -> str:
        return sha256(self.reference).hexdigest()


class TileProblem:
    """The search for tiles of a kernel, whose program is the untiled function."""

    task: Task = "tile"
    subject = "function"
    compiler = XlaCompiler
    clock = "monotonic"

    def __init__(self, kernel: TiledKernel):
        from hlorank.measure.lower import flat_arguments, lower

        self.name = kernel.name
        self.arguments = flat_arguments(kernel.arguments)
        self._kernel = kernel
        self._tiles = list(dict.fromkeys(_plain(tile) for tile in kernel.tiles))
        if not self._tiles:
            raise HlorankError(f"'{self.name}' has no tiles")
        self.space = TileSpace(len(self._tiles))
        self.default = self.space.everything()[0]
        whole = repeatable(lower(kernel.name, kernel.whole, kernel.arguments))
        self.reference = whole.SerializeToString()
        self.graph = Graph.from_hlo_proto(self.reference, task="tile")

    def program(self, candidate: np.ndarray) -> bytes:
        from hlorank.measure.lower import lower

        if not candidate[0]:
            return self.reference
        tiled = self._kernel.tiled(self._tiles[candidate[0] - 1])
        return repeatable(lower(self.name, tiled, self._kernel.arguments)).SerializeToString()

    def is_ranked(self, candidate: np.ndarray) -> bool:
        """Returns False for the untiled function."""
        return bool(candidate[0])

    def configurations(self, candidates: Candidates) -> Tiles:
        tiles = [self._tiles[number - 1] for number in candidates[:, 0]]
        return Tiles(
            kernel_bounds=[tile.reduction for tile in tiles],
            output_bounds=[tile.output for tile in tiles],
        )

    def candidates(self, configurations: Configurations) -> Candidates:
        """Returns nothing, since a search asks for predictions of every tile."""
        return self.space.everything()[:0]

    def written(self, candidate: np.ndarray) -> dict[str, list[int]]:
        """Returns the bounds of the tile; nothing for the untiled function."""
        if not candidate[0]:
            return {}
        tile = self._tiles[candidate[0] - 1]
        return {"kernel_bounds": list(tile.reduction), "output_bounds": list(tile.output)}

    def read(self, written: dict[str, list[int]]) -> np.ndarray:
        every = [self.space.default, *self.space.everything()]
        return next(candidate for candidate in every if self.written(candidate) == written)

    def identity(self) -> str:
        tiles = repr([(tile.output, tile.reduction) for tile in self._tiles])
        return sha256(self.reference + self._default_program() + tiles.encode()).hexdigest()

    def _default_program(self) -> bytes:
        try:
            return self.program(self.default)
        # The user's kernel may raise anything; the search reports it.
        except Exception:
            return b""


def _plain(tile: Tile) -> Tile:
    """Converts the tile's numbers to Python's int."""
    return Tile(tuple(map(int, tile.output)), tuple(map(int, tile.reduction)))
