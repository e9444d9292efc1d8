"""The kernels of a fusion configuration.

A node is either written to memory, or fused into every user that can take it and computed there. A
kernel is a written node with everything that is fused into it, found backwards. It has one output,
so that no configuration has a cycle.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from hlorank_tune.measure.fusion.graph import FusionGraph
from hlorank_tune.measure.fusion.limits import DEFAULT, Limits, offender
from hlorank_tune.measure.fusion.opcodes import FREE


@dataclass(frozen=True)
class Kernel:
    """A written node and the nodes that are computed with it."""

    root: int
    members: tuple[int, ...]
    """Ascending; the last one is the root."""
    inputs: tuple[int, ...]
    """Nodes whose written values are read, in the order of first use; no scalar constants."""


@dataclass(frozen=True)
class Configuration:
    """A choice of fused nodes, and its kernels by root, ascending."""

    fused: frozenset[int]
    kernels: tuple[Kernel, ...]


def configuration(
    graph: FusionGraph, fused: Iterable[int], limits: Limits = DEFAULT
) -> Configuration:
    """Returns the kernels of a choice; a node that breaks the limits is written instead."""
    forming = _Forming(graph, frozenset(fused) & frozenset(graph.slots), limits)
    kernels = forming.kernels()
    return Configuration(frozenset(forming.fused), tuple(_live(graph, kernels)))


class _Forming:
    def __init__(self, graph: FusionGraph, fused: frozenset[int], limits: Limits):
        self._graph = graph
        self._limits = limits
        self.fused = set(fused)

    def kernels(self) -> dict[int, Kernel]:
        """Forms the kernels from the last written node on; every written node has one."""
        kernels: dict[int, Kernel] = {}
        waiting = [node for node in range(len(self._graph.nodes)) if self._is_written(node)]
        while waiting:
            root = waiting.pop()
            kernel = _kernel(self._graph, root, self.fused)
            unfused = offender(self._graph, kernel.members, self._limits)
            if unfused is None:
                kernels[root] = kernel
                continue
            self.fused.discard(unfused)
            stale = [k for k, v in kernels.items() if unfused in v.members and k != unfused]
            for other in stale:
                del kernels[other]
            written_already = unfused in kernels or unfused in waiting
            waiting += [root, *stale, *([] if written_already else [unfused])]
        return kernels

    def _is_written(self, node: int) -> bool:
        graph = self._graph
        if graph.opcode(node) in FREE:
            return False
        users = graph.users[node]
        fused_everywhere = all(graph.fusible(user) for user in users) and bool(users)
        return node not in self.fused or node == graph.root or not fused_everywhere


def _kernel(graph: FusionGraph, root: int, fused: set[int]) -> Kernel:
    members = {root}
    inputs = set()
    reached = [root] if graph.fusible(root) else []
    if not reached:
        return Kernel(root, (root,), tuple(dict.fromkeys(graph.operands[root])))
    while reached:
        for operand in graph.operands[reached.pop()]:
            if operand in members or graph.is_scalar_constant(operand):
                continue
            if operand in fused:
                members.add(operand)
                reached.append(operand)
            else:
                inputs.add(operand)
    ordered = tuple(sorted(members))
    used = (operand for member in ordered for operand in graph.operands[member])
    return Kernel(root, ordered, tuple(dict.fromkeys(o for o in used if o in inputs)))


def _live(graph: FusionGraph, kernels: dict[int, Kernel]) -> list[Kernel]:
    """Returns the kernels whose output is read, by root."""
    live = set()
    reached = [graph.root]
    while reached:
        node = reached.pop()
        if node not in live:
            live.add(node)
            reached += kernels[node].inputs if node in kernels else graph.operands[node]
    return [kernels[root] for root in sorted(kernels) if root in live]
