"""A contract of import-linter: no folders of a package use each other in a circle.

A folder has the modules that lie directly in it, so that a package and the packages inside it are
folders of their own, which ``acyclic_siblings`` does not compare.
"""

from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, output


class FoldersContract(Contract):
    """Holds every root package to it; it has no fields."""

    type_name = "folders"

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Looks for a circle."""
        uses = _uses(graph)
        try:
            TopologicalSorter(uses).prepare()
        except CycleError as error:
            circle = error.args[1]
            return ContractCheck(kept=False, metadata={"circle": circle, "uses": uses})
        return ContractCheck(kept=True)

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Prints the folders of the circle, and an import of each."""
        circle: list[str] = check.metadata["circle"]
        uses: dict[str, dict[str, Any]] = check.metadata["uses"]
        for used, user in pairwise(circle):
            importer, imported = uses[user][used]
            output.print_error(f"{user} uses {used}: {importer} imports {imported}")


def _uses(graph: ImportGraph) -> dict[str, dict[str, tuple[str, str]]]:
    """Returns the folders that every folder uses, each with one import."""
    uses: dict[str, dict[str, tuple[str, str]]] = {}
    for module in sorted(graph.modules):
        folder = _folder(graph, module)
        for imported in sorted(graph.find_modules_directly_imported_by(module)):
            other = _folder(graph, imported)
            if other != folder:
                uses.setdefault(folder, {}).setdefault(other, (module, imported))
    return uses


def _folder(graph: ImportGraph, module: str) -> str:
    """Returns the folder that a module lies in; a package lies in itself."""
    return module if graph.find_children(module) else module.rpartition(".")[0]
