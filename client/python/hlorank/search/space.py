"""What a server has to know of the candidates of a search."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from hlorank.configurations import Configurations
from hlorank.graph import Graph

C = TypeVar("C")


class Space(Protocol[C]):
    """The candidates of one graph, in the form of the tuner, as configurations of the graph."""

    graph: Graph

    def configurations(self, candidates: Sequence[C]) -> Configurations:
        """Converts candidates to the configurations that a model ranks."""
        ...

    def candidates(self, configurations: Configurations) -> Sequence[C]:
        """Converts configurations of the graph back; may leave out those that it cannot."""
        ...
