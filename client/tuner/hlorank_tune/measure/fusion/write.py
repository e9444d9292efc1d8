"""Writes a program with chosen kernels, each kernel as a module of its own, and loops over one."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hlorank_tune.measure.fusion.graph import FusionGraph
from hlorank_tune.measure.fusion.kernels import Kernel
from hlorank_tune.measure.fusion.prepare import set_row_major
from hlorank_tune.measure.schema import HloModuleProto, ShapeProto

_S32 = 4
"""Value of xla.PrimitiveType."""


class Builder:
    """A module that grows; ids count from 1 in the order of creation."""

    def __init__(self, name: str, computations: Iterable[Any] = ()):
        """``computations`` are those that copied instructions call."""
        self.module = HloModuleProto(name=name)
        self._originals = {c.id: c for c in computations}
        self._called: dict[int, int] = {}
        self._last = 0

    def computation(self, name: str) -> Any:
        """Adds an empty computation."""
        computation = self.module.computations.add(id=self._fresh())
        computation.name = f"{name}.{computation.id}"
        return computation

    def add(
        self, computation: Any, opcode: str, shape: Any = None, operands: Iterable[int] = ()
    ) -> Any:
        """Adds an instruction, whose shape may be set later."""
        instruction = computation.instructions.add(id=self._fresh(), opcode=opcode)
        instruction.name = f"{opcode}.{instruction.id}"
        if shape is not None:
            instruction.shape.CopyFrom(shape)
        instruction.operand_ids.extend(operands)
        return instruction

    def parameter(self, computation: Any, number: int, shape: Any) -> int:
        """Adds a parameter and returns its id."""
        parameter = self.add(computation, "parameter", shape)
        parameter.parameter_number = number
        return parameter.id

    def number(self, computation: Any, value: int) -> int:
        """Adds a constant s32 and returns its id."""
        constant = self.add(computation, "constant", ShapeProto(element_type=_S32))
        set_row_major(constant.shape)
        constant.literal.shape.CopyFrom(constant.shape)
        constant.literal.s32s.append(value)
        return constant.id

    def copy(self, computation: Any, instruction: Any, renamed: Mapping[int, int]) -> int:
        """Adds a copy of an instruction with other operands, without metadata; returns its id."""
        called = [self.called(identity) for identity in instruction.called_computation_ids]
        copy = computation.instructions.add()
        copy.CopyFrom(instruction)
        copy.ClearField("metadata")
        copy.ClearField("frontend_attributes")
        copy.id = self._fresh()
        copy.name = f"{instruction.opcode}.{copy.id}"
        copy.operand_ids[:] = [renamed[operand] for operand in instruction.operand_ids]
        copy.called_computation_ids[:] = called
        return copy.id

    def called(self, identity: int) -> int:
        """Returns the copy of a computation that an instruction calls, such as a reducer."""
        if identity not in self._called:
            original = self._originals[identity]
            for instruction in original.instructions:
                for nested in instruction.called_computation_ids:
                    self.called(nested)
            computation = self.computation("called")
            renamed = {}
            for instruction in original.instructions:
                renamed[instruction.id] = self.copy(computation, instruction, renamed)
            self.finish(computation, renamed[original.root_id])
            self._called[identity] = computation.id
        return self._called[identity]

    def finish(self, computation: Any, root: int) -> None:
        """Sets the root of a complete computation, row-major layouts and the program shape."""
        computation.root_id = root
        for instruction in computation.instructions:
            set_row_major(instruction.shape)
        parameters = [i for i in computation.instructions if i.opcode == "parameter"]
        shape = computation.program_shape
        for parameter in sorted(parameters, key=lambda p: p.parameter_number):
            shape.parameters.add().CopyFrom(parameter.shape)
            shape.parameter_names.append(parameter.name)
        shape.result.CopyFrom(next(i.shape for i in computation.instructions if i.id == root))

    def finish_module(self, entry: Any, root: int) -> Any:
        """Makes a computation the entry and returns the module."""
        self.finish(entry, root)
        self.module.entry_computation_id = entry.id
        self.module.entry_computation_name = entry.name
        self.module.host_program_shape.CopyFrom(entry.program_shape)
        return self.module

    def _fresh(self) -> int:
        self._last += 1
        return self._last


def fused_program(graph: FusionGraph, kernels: Sequence[Kernel], name: str = "program") -> Any:
    """Returns the HloModuleProto of the program, in which every fusible kernel is a fusion."""
    builder = Builder(name, graph.module.computations)
    bodies = {k.root: _body(builder, graph, k) for k in kernels if graph.fusible(k.root)}
    for kernel in kernels:
        _called_first(builder, graph, kernel)
    entry = builder.computation("main")
    renamed = {}
    by_root = {k.root: k for k in kernels}
    # What the entry computation must have, besides roots and parameters.
    used = set()
    reached = [graph.root, *(node for kernel in kernels for node in kernel.inputs)]
    while reached:
        node = reached.pop()
        if node not in used:
            used.add(node)
            reached += [] if node in by_root else graph.operands[node]
    for node, instruction in enumerate(graph.nodes):
        if node in bodies:
            _fusion(builder, entry, graph, by_root[node], bodies[node], renamed)
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
    constants = [] if fusible else [n for n in kernel.inputs if graph.is_scalar_constant(n)]
    inputs = [node for node in kernel.inputs if node not in constants]
    renamed = _parameters(builder, entry, graph, inputs)
    for node in constants:
        renamed[graph.nodes[node].id] = builder.copy(entry, graph.nodes[node], renamed)
    root = graph.nodes[kernel.root]
    if body is not None:
        _fusion(builder, entry, graph, kernel, body, renamed)
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
    inputs = [node for node in kernel.inputs if not graph.is_scalar_constant(node)]
    renamed = _parameters(builder, entry, graph, inputs)
    _copy_members(builder, entry, graph, kernel, renamed)
    return builder.finish_module(entry, renamed[graph.nodes[kernel.root].id])


def _parameters(
    builder: Builder, computation: Any, graph: FusionGraph, nodes: Iterable[int]
) -> dict[int, int]:
    """Adds a parameter for each node, and returns their new ids by the old ones."""
    originals = [graph.nodes[node] for node in nodes]
    return {
        original.id: builder.parameter(computation, number, original.shape)
        for number, original in enumerate(originals)
    }


def digest(kernel: Any) -> str:
    """Returns the 32 hex digits that identify a kernel's module."""
    return hashlib.sha256(kernel.SerializeToString(deterministic=True)).hexdigest()[:32]


def _fusion(
    builder: Builder,
    entry: Any,
    graph: FusionGraph,
    kernel: Kernel,
    body: int,
    renamed: dict[int, int],
) -> None:
    root = graph.nodes[kernel.root]
    operands = [renamed[graph.nodes[node].id] for node in kernel.inputs]
    fusion = builder.add(entry, "fusion", root.shape, operands)
    fusion.fusion_kind = "kLoop"
    fusion.called_computation_ids.append(body)
    renamed[root.id] = fusion.id


def _called_first(builder: Builder, graph: FusionGraph, kernel: Kernel) -> None:
    """Copies reducers before what calls them."""
    for member in kernel.members:
        for identity in graph.nodes[member].called_computation_ids:
            builder.called(identity)


def _body(builder: Builder, graph: FusionGraph, kernel: Kernel) -> int:
    """Adds the fused computation of a kernel and returns its id; parameters are the inputs."""
    _called_first(builder, graph, kernel)
    body = builder.computation("kernel")
    renamed = _parameters(builder, body, graph, kernel.inputs)
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


_PRED = 1
_TUPLE = 13
"""Values of xla.PrimitiveType."""
_OUTPUT = 2
"""Position of the last output in the state of a loop."""


def looped(kernel: Any) -> Any:
    """Returns a module that computes a kernel's module repeatedly.

    Its parameters are the number of repetitions (s32), an array of the output's shape, and the
    kernel's parameters. Its result is the last output.
    """
    entry = next(c for c in kernel.computations if c.id == kernel.entry_computation_id)
    builder = Builder("loop", kernel.computations)
    parameters = [i for i in entry.instructions if i.opcode == "parameter"]
    parameters.sort(key=lambda parameter: parameter.parameter_number)
    number = ShapeProto(element_type=_S32)
    output = next(i.shape for i in entry.instructions if i.id == entry.root_id)
    # What the loop carries: the count, the limit, the last output and the inputs.
    shapes = [number, number, output, *(parameter.shape for parameter in parameters)]
    state = ShapeProto(element_type=_TUPLE, tuple_shapes=shapes)

    def element(computation: Any, whole: Any, index: int) -> int:
        shape = whole.shape.tuple_shapes[index]
        taken = builder.add(computation, "get-tuple-element", shape, [whole.id])
        taken.tuple_index = index
        return taken.id

    for instruction in entry.instructions:
        for called in instruction.called_computation_ids:
            builder.called(called)
    body = builder.computation("body")
    whole = builder.add(body, "parameter", state)
    count, limit, *inputs = (element(body, whole, n) for n in range(len(shapes)) if n != _OUTPUT)
    renamed = {parameter.id: own for parameter, own in zip(parameters, inputs, strict=True)}
    for instruction in entry.instructions:
        if instruction.opcode != "parameter":
            renamed[instruction.id] = builder.copy(body, instruction, renamed)
    more = builder.add(body, "add", number, [count, builder.number(body, 1)]).id
    values = [more, limit, renamed[entry.root_id], *inputs]
    builder.finish(body, builder.add(body, "tuple", state, values).id)
    condition = builder.computation("condition")
    whole = builder.add(condition, "parameter", state)
    operands = [element(condition, whole, n) for n in (0, 1)]
    less = builder.add(condition, "compare", ShapeProto(element_type=_PRED), operands)
    less.comparison_direction = "LT"
    builder.finish(condition, less.id)
    main = builder.computation("main")
    values = [builder.parameter(main, n, shape) for n, shape in enumerate(shapes[1:])]
    start = builder.add(main, "tuple", state, [builder.number(main, 0), *values])
    loop = builder.add(main, "while", state, [start.id])
    loop.called_computation_ids.extend([body.id, condition.id])
    return builder.finish_module(main, element(main, loop, _OUTPUT))
