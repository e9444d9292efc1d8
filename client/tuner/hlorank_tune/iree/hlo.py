"""The dispatches of IREE as HLO modules, which servers featurize as the graphs of kernels."""

from collections.abc import Callable
from typing import Any

from iree.compiler import ir, passmanager

from hlorank_tune.iree.hlo_loops import Loops, reducer
from hlorank_tune.iree.hlo_scalars import element_of, scalar_node
from hlorank_tune.iree.hlo_text import Node, UnsupportedDispatch, Writer, braces

_LOAD = "iree_tensor_ext.dispatch.tensor.load"
_STORE = "iree_tensor_ext.dispatch.tensor.store"


def kernel_hlo(function: ir.Operation, name: str) -> str:
    """Converts one dispatch to an HLO module.

    Args:
        function: the ``func.func`` of an executable in the phase ``executable-sources``; the
            arrays that it loads are the parameters, and those that it stores are the result.
        name: the name of the module.

    Raises:
        UnsupportedDispatch: for an operation that has no counterpart in HLO.
    """
    function = function.operation.clone()
    with function.context:
        passes = passmanager.PassManager.parse("func.func(linalg-generalize-named-ops)")
        passes.run(function)
        operations = [o.operation for o in function.regions[0].blocks[0].operations]
        write = Writer()
        nodes: dict[Any, Node] = {}

        def node_of(value: Any) -> Node:
            if value not in nodes:
                operation = value.owner.operation
                nodes.update(zip(operation.results, converted(operation), strict=True))
            return nodes[value]

        def converted(operation: Any) -> list[Node]:
            if operation.name == "linalg.generic":
                return Loops(write, operation, node_of).results()
            if operation.name in _CONVERSIONS:
                return _CONVERSIONS[operation.name](write, operation, node_of)
            if not operation.name.startswith(("arith.", "math.")):
                raise UnsupportedDispatch(operation.name, "the operation has no counterpart in HLO")
            operands = [node_of(operand) for operand in operation.operands]
            return [scalar_node(write, operation, operands)]

        for operation in operations:
            if operation.name == _LOAD:
                result = operation.results[0]
                nodes[result] = write.parameter(*_kind(result))
        # From the stores backwards, so that offsets are not converted.
        roots = [node_of(o.operands[0]) for o in operations if o.name == _STORE]
        if not roots:
            raise UnsupportedDispatch("func.func", "the dispatch stores nothing")
        root = roots[0] if len(roots) == 1 else write.tuple_of(roots)
        if root.opcode == "parameter":
            root = write.like("copy", [root])
        return write.module("kernel_" + "".join(c if c.isalnum() else "_" for c in name), root)


NodeOf = Callable[[Any], Node]


def _kind(value: Any) -> tuple[str, tuple[int, ...]]:
    """Returns the element type and the shape of a tensor or a scalar."""
    kind = value.type
    if not hasattr(kind, "shape"):
        return element_of(kind), ()
    if not kind.has_static_shape:
        raise UnsupportedDispatch(str(kind), "the shape is not static")
    return element_of(kind.element_type), tuple(kind.shape)


def _constant(write: Writer, operation: Any, node_of: NodeOf) -> list[Node]:
    element, shape = _kind(operation.results[0])
    value = operation.attributes["value"]
    if isinstance(value, ir.DenseElementsAttr):
        if not value.is_splat:
            raise UnsupportedDispatch(operation.name, "the array is not one repeated value")
        value = value.get_splat_value()
    return [write.broadcast(write.constant(element, value.value), shape)]


def _push_constant(write: Writer, operation: Any, node_of: NodeOf) -> list[Node]:
    return [write.parameter(*_kind(operation.results[0]))]


def _zeros(write: Writer, operation: Any, node_of: NodeOf) -> list[Node]:
    element, shape = _kind(operation.results[0])
    return [write.broadcast(write.constant(element, 0), shape)]


def _reshape(write: Writer, operation: Any, node_of: NodeOf) -> list[Node]:
    return [write.reshape(node_of(operation.operands[0]), _kind(operation.results[0])[1])]


def _softmax(write: Writer, operation: Any, node_of: NodeOf) -> list[Node]:
    node = node_of(operation.operands[0])
    dimension = operation.attributes["dimension"].value
    largest = _over_dimension(write, node, dimension, "maximum")
    powers = write.like("exponential", [write.like("subtract", [node, largest])])
    return [write.like("divide", [powers, _over_dimension(write, powers, dimension, "add")])]


def _over_dimension(write: Writer, node: Node, dimension: int, opcode: str) -> Node:
    """Reduces a dimension, and repeats the result along it."""
    start = write.constant(node.element, 0 if opcode == "add" else float("-inf"))
    kept = [i for i in range(len(node.shape)) if i != dimension]
    text = f", dimensions={braces([dimension])}, to_apply={reducer(write, opcode, node.element)}"
    result = (node.element, [node.shape[i] for i in kept])
    return write.broadcast(write.add("reduce", result, [node, start], text), node.shape, kept)


_CONVERSIONS: dict[str, Callable[[Writer, Any, NodeOf], list[Node]]] = {
    "arith.constant": _constant,
    "hal.interface.constant.load": _push_constant,
    "tensor.empty": _zeros,
    "tensor.expand_shape": _reshape,
    "tensor.collapse_shape": _reshape,
    "linalg.softmax": _softmax,
}
