"""Writes a program with chosen kernels, and each kernel as a module of its own."""

import hashlib
from collections.abc import Sequence
from typing import Any

from hlorank_tune.measure.fusion.builder import Builder
from hlorank_tune.measure.fusion.graph import FusionGraph
from hlorank_tune.measure.fusion.kernels import Kernel


def fused_program(graph: FusionGraph, kernels: Sequence[Kernel], name: str = "program") -> Any:
    """Returns the HloModuleProto of the program, in which every fusible kernel is a fusion."""
    builder = Builder(name, graph.module.computations)
    bodies = {k.root: _body(builder, graph, k) for k in kernels if graph.fusible(k.root)}
    for kernel in kernels:
        _called_first(builder, graph, kernel)
    entry = builder.computation("main")
    renamed = {}
    by_root = {k.root: k for k in kernels}
    used = _read_nodes(graph, kernels)
    for node, instruction in enumerate(graph.nodes):
        if node in bodies:
            _fusion(builder, entry, _Call(graph, by_root[node], bodies[node]), renamed)
        elif node in by_root or node in used or instruction.opcode == "parameter":
            renamed[instruction.id] = builder.copy(entry, instruction, renamed)
    return builder.finish_module(entry, renamed[graph.nodes[graph.root].id])


def lone_kernel(graph: FusionGraph, kernel: Kernel) -> Any:
    """Returns the HloModuleProto of one kernel, whose inputs are parameters.

    Equal kernels of any programs give equal modules.
    """
    builder = Builder("kernel", graph.module.computations)
    fusible = graph.fusible(kernel.root)
    body = _body(builder, graph, kernel) if fusible else _called_first(builder, graph, kernel)
    entry = builder.computation("main")
    renamed = {}
    constants = [] if fusible else [n for n in kernel.inputs if graph.is_scalar_constant(n)]
    inputs = [node for node in kernel.inputs if node not in constants]
    for number, node in enumerate(inputs):
        original = graph.nodes[node]
        renamed[original.id] = builder.parameter(entry, number, original.shape)
    for node in constants:
        renamed[graph.nodes[node].id] = builder.copy(entry, graph.nodes[node], renamed)
    root = graph.nodes[kernel.root]
    if body is not None:
        _fusion(builder, entry, _Call(graph, kernel, body), renamed)
    else:
        renamed[root.id] = builder.copy(entry, root, renamed)
    return builder.finish_module(entry, renamed[root.id])


def plain_kernel(graph: FusionGraph, kernel: Kernel) -> Any:
    """Returns the HloModuleProto of one kernel without a fusion around it, as a model sees it.

    The server gives its nodes the features of this module; ``graph/README.md`` has the order.
    """
    builder = Builder("kernel", graph.module.computations)
    _called_first(builder, graph, kernel)
    entry = builder.computation("main")
    renamed = {}
    inputs = [node for node in kernel.inputs if not graph.is_scalar_constant(node)]
    for number, node in enumerate(inputs):
        original = graph.nodes[node]
        renamed[original.id] = builder.parameter(entry, number, original.shape)
    _copy_members(builder, entry, graph, kernel, renamed)
    return builder.finish_module(entry, renamed[graph.nodes[kernel.root].id])


def digest(kernel: Any) -> str:
    """Returns the 32 hex digits that identify a kernel's module."""
    return hashlib.sha256(kernel.SerializeToString(deterministic=True)).hexdigest()[:32]


class _Call:
    def __init__(self, graph: FusionGraph, kernel: Kernel, body: int):
        self.root = graph.nodes[kernel.root]
        self.body = body
        self.inputs = [graph.nodes[node].id for node in kernel.inputs]


def _fusion(builder: Builder, entry: Any, call: _Call, renamed: dict[int, int]) -> None:
    operands = [renamed[identity] for identity in call.inputs]
    fusion = builder.add(entry, "fusion", call.root.shape, operands)
    fusion.fusion_kind = "kLoop"
    fusion.called_computation_ids.append(call.body)
    renamed[call.root.id] = fusion.id


def _read_nodes(graph: FusionGraph, kernels: Sequence[Kernel]) -> set[int]:
    """Returns the nodes that the entry computation must have, besides roots and parameters."""
    used = set()
    reached = [graph.root, *(node for kernel in kernels for node in kernel.inputs)]
    roots = {kernel.root for kernel in kernels}
    while reached:
        node = reached.pop()
        if node not in used:
            used.add(node)
            reached += [] if node in roots else graph.operands[node]
    return used


def _called_first(builder: Builder, graph: FusionGraph, kernel: Kernel) -> None:
    """Copies reducers before what calls them."""
    for member in kernel.members:
        for identity in graph.nodes[member].called_computation_ids:
            builder.called(identity)


def _body(builder: Builder, graph: FusionGraph, kernel: Kernel) -> int:
    """Adds the fused computation of a kernel and returns its id; parameters are the inputs."""
    _called_first(builder, graph, kernel)
    body = builder.computation("kernel")
    renamed = {}
    for number, node in enumerate(kernel.inputs):
        original = graph.nodes[node]
        renamed[original.id] = builder.parameter(body, number, original.shape)
    _copy_members(builder, body, graph, kernel, renamed, keep_order=True)
    builder.finish(body, renamed[graph.nodes[kernel.root].id])
    return body.id


def _copy_members(
    builder: Builder,
    body: Any,
    graph: FusionGraph,
    kernel: Kernel,
    renamed: dict[int, int],
    keep_order: bool = False,
) -> None:
    """Adds the members, each constant before its first user.

    ``keep_order`` adds to every transpose what keeps it row-major when it is compiled.
    """
    for member in kernel.members:
        for operand in graph.operands[member]:
            constant = graph.nodes[operand]
            if graph.is_scalar_constant(operand) and constant.id not in renamed:
                renamed[constant.id] = builder.copy(body, constant, renamed)
        original = graph.nodes[member]
        renamed[original.id] = builder.copy(body, original, renamed)
        if keep_order and original.opcode == "transpose":
            renamed[original.id] = _row_major(builder, body, original.shape, renamed[original.id])


def _row_major(builder: Builder, body: Any, shape: Any, value: int) -> int:
    """Adds instructions that keep a transpose row-major, at no cost inside a fusion.

    Layouts are lost when the module is compiled, and XLA infers that a transpose permutes the
    layout of its operand. A broadcast is row-major again, and a slice of one of its two copies is
    not folded away, as a reshape alone would be.
    """
    sizes = list(shape.dimensions)
    for opcode, dimensions in (
        ("broadcast", [2, *sizes]),
        ("slice", [1, *sizes]),
        ("reshape", sizes),
    ):
        added = builder.add(body, opcode, operands=[value])
        added.shape.element_type = shape.element_type
        added.shape.dimensions.extend(dimensions)
        if opcode == "broadcast":
            added.dimensions.extend(range(1, len(dimensions)))
        if opcode == "slice":
            for size in dimensions:
                added.slice_dimensions.add(start=0, limit=size, stride=1)
        value = added.id
    return value
