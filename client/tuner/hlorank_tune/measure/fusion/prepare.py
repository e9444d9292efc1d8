"""Prepares a module whose fusion is chosen."""

from dataclasses import dataclass
from typing import Any

from hlorank_tune.measure.execute import Executable
from hlorank_tune.measure.fusion.draw import compilers
from hlorank_tune.measure.fusion.graph import FusionGraph
from hlorank_tune.measure.fusion.inline import inlined
from hlorank_tune.measure.fusion.kernels import Configuration
from hlorank_tune.measure.fusion.logical import logical
from hlorank_tune.measure.fusion.passes import OWN_FUSION


@dataclass(frozen=True)
class Prepared:
    """A module that the compiler optimized, before fusion."""

    graph: FusionGraph
    written: frozenset[int]
    """The nodes that the compiler writes to memory."""

    @property
    def compilers(self) -> Configuration:
        """The compiler's own configuration, as nearly as kernels with one output can have it."""
        return compilers(self.graph, self.written)


def prepare(module: Any) -> Prepared:
    """Compiles an HloModuleProto and takes its fusions apart.

    The compiler's fusion stays on: without it, XLA:CPU computes wrong results for some programs.
    """
    return from_compiled(Executable(module, (), OWN_FUSION).optimized())


def from_compiled(optimized: Any) -> Prepared:
    """Prepares a module that was compiled with ``OWN_FUSION``."""
    flat, written = inlined(optimized)
    module, written = logical(flat, written)
    graph = FusionGraph(module)
    nodes = (graph.number.get(identity) for identity in written)
    return Prepared(graph, frozenset(node for node in nodes if node is not None))
