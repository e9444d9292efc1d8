"""What a kernel may compute; beyond it, its code or its run time explodes."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from hlorank_tune.measure.fusion.graph import FusionGraph
from hlorank_tune.measure.fusion.opcodes import ELEMENTWISE, EXPENSIVE, REDUCING


@dataclass(frozen=True)
class Limits:
    """Maximum cost of the members of a kernel."""

    members: int = 120
    places: int = 6
    """Places in the code at which one member is computed; more take seconds to compile."""
    repeats: float = 64.0
    """How often a cheap member may be computed per element of it."""
    expensive_repeats: float = 8.0
    reducing_repeats: float = 1.0

    def allowed(self, opcode: str) -> float:
        """Returns how often a member with this opcode may be computed per element."""
        if opcode in REDUCING:
            return self.reducing_repeats
        return self.expensive_repeats if opcode in EXPENSIVE else self.repeats


DEFAULT = Limits()
UNLIMITED = Limits(10**9, 10**9, math.inf, math.inf, math.inf)


def offender(graph: FusionGraph, members: Iterable[int], limits: Limits) -> int | None:
    """Returns the member that must be written to memory first; None if the kernel is allowed.

    ``members`` are the nodes of a kernel; the last one is its root.
    """
    ordered = sorted(members, reverse=True)
    if len(ordered) == 1:
        return None
    evaluations = Evaluations(graph, ordered)
    for node in ordered[1:]:
        if evaluations.places(node) > limits.places:
            return node
        # Products of many factors are not exact.
        if evaluations.repeats(node) > limits.allowed(graph.opcode(node)) * (1 + 1e-9):
            return node
        evaluations.spread(node)
    return ordered[-1] if len(ordered) > limits.members else None


class Evaluations:
    """How often each member is computed, at each place of the generated code.

    A place is an index expression: elementwise users of one index share their operand's value, and
    every other user has an index of its own.
    """

    def __init__(self, graph: FusionGraph, ordered: list[int]):
        self._graph = graph
        self._at: dict[int, dict[int, float]] = {node: {} for node in ordered}
        self._at[ordered[0]] = {0: float(graph.elements(ordered[0]))}
        self._next_place = 1
        self.spread(ordered[0])

    def places(self, node: int) -> int:
        """Returns at how many places a member is computed."""
        return len(self._at[node])

    def repeats(self, node: int) -> float:
        """Returns how often a member is computed per element of it."""
        return sum(self._at[node].values()) / max(1, self._graph.elements(node))

    def spread(self, user: int) -> None:
        """Adds the evaluations of a member to its operands."""
        for operand in dict.fromkeys(self._graph.operands[user]):
            if operand in self._at:
                self._add(user, self._at[operand])

    def _add(self, user: int, operand: dict[int, float]) -> None:
        for place, count in self._at[user].items():
            if self._graph.opcode(user) in ELEMENTWISE:
                operand[place] = max(operand.get(place, 0.0), count)
            else:
                operand[self._next_place] = count * _trips(self._graph, user)
                self._next_place += 1


def _trips(graph: FusionGraph, node: int) -> int:
    """Returns how many elements of its first operand an element of a node's output reads."""
    instruction = graph.nodes[node]
    if instruction.opcode == "reduce":
        first = graph.elements(graph.operands[node][0])
        return max(1, first // max(1, graph.elements(node)))
    if instruction.opcode == "reduce-window":
        return math.prod(max(1, dimension.size) for dimension in instruction.window.dimensions)
    return 1
