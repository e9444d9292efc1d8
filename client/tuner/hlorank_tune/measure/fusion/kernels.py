"""The kernels of a fusion configuration, and configurations to measure.

A node is either written to memory, or fused into every user that can take it and computed there. A
kernel is a written node with everything that is fused into it, found backwards. It has one output,
so that no configuration has a cycle. Beyond its limits, its code or its run time explodes.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from hlorank_tune.measure.fusion.graph import ELEMENTWISE, EXPENSIVE, FREE, REDUCING, FusionGraph


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
    chosen = set(fused) & set(graph.slots)

    def is_written(node: int) -> bool:
        if graph.opcode(node) in FREE:
            return False
        users = graph.users[node]
        fused_everywhere = all(graph.fusible(user) for user in users) and bool(users)
        return node not in chosen or node == graph.root or not fused_everywhere

    # From the last written node on; every written node has a kernel.
    kernels: dict[int, Kernel] = {}
    waiting = [node for node in range(len(graph.nodes)) if is_written(node)]
    while waiting:
        root = waiting.pop()
        kernel = _kernel(graph, root, chosen)
        unfused = offender(graph, kernel.members, limits)
        if unfused is None:
            kernels[root] = kernel
            continue
        chosen.discard(unfused)
        stale = [k for k, v in kernels.items() if unfused in v.members and k != unfused]
        for other in stale:
            del kernels[other]
        written_already = unfused in kernels or unfused in waiting
        waiting += [root, *stale, *([] if written_already else [unfused])]
    # Those whose output is read.
    live = set()
    reached = [graph.root]
    while reached:
        node = reached.pop()
        if node not in live:
            live.add(node)
            reached += kernels[node].inputs if node in kernels else graph.operands[node]
    read = (kernels[root] for root in sorted(kernels) if root in live)
    return Configuration(frozenset(chosen), tuple(read))


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


GREEDY = Limits(places=15, repeats=math.inf, expensive_repeats=1.0)
"""Everything is fused that is cheap to compute twice."""
_RATES = (0.2, 0.5, 0.7, 0.85, 0.95)
"""Probabilities of a bit, one of which is drawn for a configuration."""
_ALMOST_FREE = ("broadcast", "iota")
"""Opcodes that are mostly fused, since writing their output has no benefit."""


def unfused(graph: FusionGraph) -> Configuration:
    """Returns the configuration that writes every node."""
    return configuration(graph, ())


def greedy(graph: FusionGraph) -> Configuration:
    """Returns the configuration that fuses whatever is not expensive to repeat."""
    return configuration(graph, graph.slots, GREEDY)


def compilers(graph: FusionGraph, written: frozenset[int]) -> Configuration:
    """Returns the compiler's own choice, given the nodes that it wrote."""
    return configuration(graph, set(graph.slots) - written, UNLIMITED)


def drawn(
    graph: FusionGraph, random: np.random.Generator, limits: Limits = DEFAULT
) -> Configuration:
    """Returns random bits, whose rate is drawn first."""
    rate = random.choice(_RATES)
    rates = {True: 1 - (1 - rate) / 4, False: rate}
    fused = [
        node for node in graph.slots if random.random() < rates[graph.opcode(node) in _ALMOST_FREE]
    ]
    return configuration(graph, fused, limits)


def neighbour(
    graph: FusionGraph,
    fused: frozenset[int],
    random: np.random.Generator,
    flips: int,
    limits: Limits = DEFAULT,
) -> Configuration:
    """Returns a configuration in which some bits are flipped."""
    count = min(flips, len(graph.slots))
    changed = random.choice(graph.slots, size=count, replace=False) if count else []
    return configuration(graph, fused ^ {int(node) for node in changed}, limits)
