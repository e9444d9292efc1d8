"""Fusion configurations to measure."""

import math

import numpy as np

from hlorank_tune.measure.fusion.graph import FusionGraph
from hlorank_tune.measure.fusion.kernels import Configuration, configuration
from hlorank_tune.measure.fusion.limits import DEFAULT, UNLIMITED, Limits

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
