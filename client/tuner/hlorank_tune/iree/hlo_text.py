"""HLO modules as text, written one instruction at a time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf

from hlorank import HlorankError


class UnsupportedDispatch(HlorankError):  # noqa: N818
    """A dispatch that cannot be converted to HLO: the operation, and why."""

    def __init__(self, operation: str, reason: str):
        super().__init__(f"{operation}: {reason}; the dispatch has no kernel graph")
        self.operation = operation
        self.reason = reason


@dataclass(frozen=True, eq=False)
class Node:
    """An instruction."""

    name: str
    opcode: str
    element: str
    """The element type, such as ``f32``; for a tuple its whole type."""
    shape: tuple[int, ...]
    operands: tuple["Node", ...]
    literal: str
    """The value of a constant, or the number of a parameter."""
    attributes: str

    @property
    def type(self) -> str:
        """The type in HLO, with the row-major layout."""
        if self.element.startswith("("):
            return self.element
        return _type(self.element, self.shape)

    def __str__(self) -> str:
        inputs = self.literal or ", ".join(operand.name for operand in self.operands)
        return f"{self.name} = {self.type} {self.opcode}({inputs}){self.attributes}"


def _type(element: str, shape: Sequence[int]) -> str:
    layout = ",".join(str(i) for i in reversed(range(len(shape))))
    return f"{element}[{','.join(map(str, shape))}]" + f"{{{layout}}}" * bool(layout)


class Writer:
    """Adds instructions to a computation; equal instructions are one node."""

    def __init__(self, computations: dict[str, str] | None = None):
        self._nodes: dict[tuple, Node] = {}
        self._computations = {} if computations is None else computations
        self._parameters: list[Node] = []

    def add(
        self,
        opcode: str,
        result: tuple[str, Sequence[int]],
        operands: Iterable[Node] = (),
        attributes: str = "",
        literal: str = "",
    ) -> Node:
        """Adds an instruction with the element type and shape ``result``."""
        key = (opcode, result[0], tuple(result[1]), tuple(operands), attributes, literal)
        if key not in self._nodes:
            name = f"{opcode}.{len(self._nodes)}"
            self._nodes[key] = Node(name, *key[:4], literal, attributes)
        return self._nodes[key]

    def parameter(self, element: str, shape: Sequence[int]) -> Node:
        """Adds the next parameter."""
        node = self.add("parameter", (element, shape), literal=str(len(self._parameters)))
        self._parameters.append(node)
        return node

    def constant(self, element: str, value: float) -> Node:
        """Adds a scalar."""
        return self.add("constant", (element, ()), literal=literal(element, value))

    def like(self, opcode: str, operands: Sequence[Node], attributes: str = "") -> Node:
        """Adds an elementwise instruction whose result has the type of its last operand."""
        last = operands[-1]
        return self.add(opcode, (last.element, last.shape), operands, attributes)

    def convert(self, node: Node, element: str) -> Node:
        """Converts the elements, unless they have the type."""
        if node.element == element:
            return node
        return self.add("convert", (element, node.shape), [node])

    def reshape(self, node: Node, shape: Sequence[int]) -> Node:
        """Changes the shape, unless the node has it."""
        if node.shape == tuple(shape):
            return node
        return self.add("reshape", (node.element, shape), [node])

    def transpose(self, node: Node, order: Sequence[int]) -> Node:
        """Permutes the dimensions, unless the order is that of the node."""
        if list(order) == sorted(order):
            return node
        shape = [node.shape[i] for i in order]
        return self.add("transpose", (node.element, shape), [node], f", dimensions={braces(order)}")

    def broadcast(self, node: Node, shape: Sequence[int], dimensions: Sequence[int] = ()) -> Node:
        """Repeats the node; its dimension i becomes the result's ``dimensions[i]``."""
        if len(node.shape) == len(shape):
            return self.transpose(node, [list(dimensions).index(i) for i in range(len(shape))])
        text = f", dimensions={braces(dimensions)}"
        return self.add("broadcast", (node.element, shape), [node], text)

    def slice(self, node: Node, bounds: Sequence[tuple[int, int, int]]) -> Node:
        """Takes (start, limit, stride) of each dimension, unless that is everything."""
        if all(b == (0, n, 1) for b, n in zip(bounds, node.shape, strict=True)):
            return node
        shape = [-(-(limit - start) // stride) for start, limit, stride in bounds]
        ranges = ", ".join(f"[{start}:{limit}:{stride}]" for start, limit, stride in bounds)
        return self.add("slice", (node.element, shape), [node], f", slice={{{ranges}}}")

    def tuple_of(self, nodes: Sequence[Node]) -> Node:
        """Adds a tuple of arrays."""
        return self.several("tuple", [(node.element, node.shape) for node in nodes], nodes)

    def several(
        self,
        opcode: str,
        results: Sequence[tuple[str, Sequence[int]]],
        operands: Sequence[Node],
        attributes: str = "",
    ) -> Node:
        """Adds an instruction whose result is a tuple of the types of ``results``."""
        types = f"({', '.join(_type(*result) for result in results)})"
        return self.add(opcode, (types, ()), operands, attributes)

    def element(self, node: Node, index: int, kind: tuple[str, Sequence[int]]) -> Node:
        """Adds the element of a tuple that has the element type and shape ``kind``."""
        return self.add("get-tuple-element", kind, [node], f", index={index}")

    def computation(self, writer: "Writer", root: Node, label: str) -> str:
        """Adds a computation that ``calls`` and ``to_apply`` name, and returns its name."""
        body = writer.body(root)
        return self._computations.setdefault(body, f"{label}.{len(self._computations)}")

    def nested(self) -> "Writer":
        """Returns a writer for a computation of the same module."""
        return Writer(self._computations)

    def body(self, root: Node) -> str:
        """Returns the instructions that the root needs, and all parameters."""
        needed = {parameter.name for parameter in self._parameters}
        waiting = [root]
        while waiting:
            node = waiting.pop()
            needed.add(node.name)
            waiting += [operand for operand in node.operands if operand.name not in needed]
        nodes = [node for node in self._nodes.values() if node.name in needed]
        return "\n".join(f"  {'ROOT ' * (node is root)}{node}" for node in nodes)

    def module(self, name: str, root: Node) -> str:
        """Returns the module with this computation as its entry."""
        entry = self.body(root)
        others = [f"{name} {{\n{body}\n}}\n" for body, name in self._computations.items()]
        return "\n".join([f"HloModule {name}\n", *others, f"ENTRY main {{\n{entry}\n}}\n"])


def braces(numbers: Iterable[int]) -> str:
    """Returns a list as HLO's attributes write it."""
    return "{" + ",".join(map(str, numbers)) + "}"


def literal(element: str, value: float) -> str:
    """Returns a scalar as HLO writes it."""
    if element == "pred":
        return "true" if value else "false"
    return repr(float(value)) if _is_float(element) else str(int(value))


def neutral(opcode: str, element: str) -> float | None:
    """Returns the neutral element of a reduction; None if the instruction has none."""
    bits = 1 if element == "pred" else int(element.lstrip("bfsu"))
    highest = inf if _is_float(element) else 2 ** (bits - 1) - 1
    lowest = -inf if _is_float(element) else -(2 ** (bits - 1))
    ones = 1 if element == "pred" else -1
    values = {"add": 0, "multiply": 1, "or": 0, "xor": 0, "and": ones}
    return (values | {"maximum": lowest, "minimum": highest}).get(opcode)


def _is_float(element: str) -> bool:
    return element.startswith(("f", "bf"))
