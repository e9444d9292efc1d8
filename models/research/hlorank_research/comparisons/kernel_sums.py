"""Features of a lone kernel, summed over its nodes, and a rough estimate of its run time."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from hlorank_tune.measure.fusion.graph import FusionGraph
from hlorank_tune.measure.fusion.inline import inlined
from hlorank_tune.measure.fusion.limits import Evaluations
from hlorank_tune.measure.fusion.opcodes import EXPENSIVE, FREE

_GROUPS = {
    "divide": {"divide", "remainder", "rsqrt", "sqrt"},
    "expensive": EXPENSIVE,
    "broadcast": {"broadcast", "iota"},
    "reshape": {"bitcast", "reshape"},
    "transpose": {"transpose"},
    "slice": {"concatenate", "dynamic-slice", "dynamic-update-slice", "pad", "reverse", "slice"},
    "gather": {"gather", "scatter", "select-and-scatter", "sort"},
    "reduce": {"reduce"},
    "window": {"reduce-window"},
    "dot": {"dot"},
    "convolution": {"convolution"},
}
_OTHER = len(_GROUPS)
"""Column of opcodes that are in no group, most of which are cheap arithmetic."""
_CALL = 100.0
_EVALUATION = 0.4
_MULTIPLICATION = 0.02
_ELEMENT = 0.1
"""Rough nanoseconds of a kernel, an evaluation, a multiplication of a product, and of an element
that is read or written."""


@dataclass(frozen=True)
class KernelSums:
    """What trees see of a kernel."""

    features: list[float]
    estimate: float
    """Nanoseconds by a rough count of its work."""


def kernel_sums(kernel: Any) -> KernelSums:
    """Returns the sums over the nodes of a lone kernel's HloModuleProto."""
    graph = FusionGraph(inlined(kernel)[0])
    nodes = [n for n in range(len(graph.nodes)) if graph.opcode(n) not in FREE]
    counts = np.zeros(_OTHER + 1)
    work = np.zeros(_OTHER + 1)
    repeats = _repeats(graph, nodes)
    for node in nodes:
        counts[_group(graph.opcode(node))] += 1
        work[_group(graph.opcode(node))] += _elements(graph, node) * repeats[node]
    parameters = [graph.elements(n) for n, i in enumerate(graph.nodes) if i.opcode == "parameter"]
    output = graph.elements(graph.root)
    products = _products(graph, nodes)
    moved = sum(parameters) + output
    estimate = _CALL + _EVALUATION * work.sum() + _MULTIPLICATION * products + _ELEMENT * moved
    sizes = [1, 1, *graph.nodes[graph.root].shape.dimensions]
    totals = (*work, work.sum(), products, sum(parameters), output, *sizes[-2:])
    return KernelSums([*counts, len(parameters), *map(math.log1p, totals)], estimate)


def _group(opcode: str) -> int:
    return next((n for n, group in enumerate(_GROUPS.values()) if opcode in group), _OTHER)


def _elements(graph: FusionGraph, node: int) -> int:
    """Returns the elements that a node computes, or reads if it reduces them."""
    reduces = graph.opcode(node) == "reduce"
    return graph.elements(graph.operands[node][0] if reduces else node)


def _repeats(graph: FusionGraph, nodes: list[int]) -> dict[int, float]:
    """Returns how often each node is computed per element, recomputation included."""
    ordered = sorted(nodes, reverse=True)
    if not graph.fusible(graph.root):
        return dict.fromkeys(nodes, 1.0)
    evaluations = Evaluations(graph, ordered)
    for node in ordered[1:]:
        evaluations.spread(node)
    return {node: evaluations.repeats(node) for node in nodes}


def _products(graph: FusionGraph, nodes: list[int]) -> float:
    """Returns the multiplications of dots and convolutions: m n k of [m, k] x [k, n]."""
    total = 0.0
    for node in nodes:
        if graph.opcode(node) in ("dot", "convolution"):
            sizes = [graph.elements(n) for n in (node, *graph.operands[node][:2])]
            total += math.sqrt(math.prod(sizes))
    return total
