"""The nodes of a prepared module whose fusion is chosen."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any


def _opcodes(text: str) -> frozenset[str]:
    return frozenset(text.split())


ELEMENTWISE = _opcodes(
    "abs add and atan2 cbrt ceil clamp compare complex convert copy cosine count-leading-zeros "
    "divide erf exponential exponential-minus-one floor imag is-finite log log-plus-one logistic "
    "maximum minimum multiply negate not or popcnt power real remainder round-nearest-afz "
    "round-nearest-even rsqrt select shift-left shift-right-arithmetic shift-right-logical sign "
    "sine sqrt subtract tan tanh xor"
)
"""An element of the output needs the elements of the operands at the same index."""
INDEXING = _opcodes(
    "broadcast concatenate dynamic-slice dynamic-update-slice iota pad reshape reverse slice "
    "transpose"
)
"""An element of the output is an element of an operand, or its index."""
REDUCING = frozenset({"reduce", "reduce-window"})
"""An element of the output needs many elements of the operand."""
FUSIBLE = ELEMENTWISE | INDEXING | REDUCING
"""Gather, scatter, select-and-scatter and sort are absent: XLA:CPU aborts on them."""
EXPENSIVE = _opcodes(
    "atan2 cbrt cosine divide erf exponential exponential-minus-one log log-plus-one logistic "
    "power remainder rsqrt sine sqrt tan tanh"
)
"""Elementwise opcodes that take much longer than an addition."""
FREE = frozenset({"constant", "get-tuple-element", "parameter", "tuple"})
"""Opcodes that take no time and are no kernels."""


@dataclass(frozen=True)
class FusionGraph:
    """The entry computation of a prepared module; nodes are positions in it."""

    module: Any
    """HloModuleProto"""

    @cached_property
    def entry(self) -> Any:
        """The entry computation."""
        identity = self.module.entry_computation_id
        return next(c for c in self.module.computations if c.id == identity)

    @cached_property
    def nodes(self) -> Sequence[Any]:
        """The instructions; operands stand before their users."""
        return list(self.entry.instructions)

    @cached_property
    def number(self) -> dict[int, int]:
        """Maps the id of an instruction to its node."""
        return {instruction.id: node for node, instruction in enumerate(self.nodes)}

    @cached_property
    def root(self) -> int:
        """The node whose value is the program's result."""
        return self.number[self.entry.root_id]

    @cached_property
    def operands(self) -> list[list[int]]:
        """The operands of each node."""
        return [[self.number[o] for o in node.operand_ids] for node in self.nodes]

    @cached_property
    def users(self) -> list[list[int]]:
        """The distinct users of each node, ascending."""
        users: list[list[int]] = [[] for _ in self.nodes]
        for node, operands in enumerate(self.operands):
            for operand in dict.fromkeys(operands):
                users[operand].append(node)
        return users

    @cached_property
    def slots(self) -> list[int]:
        """The nodes that have a bit: fusible ones with a fusible user, ascending."""
        return [
            node
            for node in range(len(self.nodes))
            if self.fusible(node) and any(self.fusible(user) for user in self.users[node])
        ]

    @cached_property
    def slot_numbers(self) -> list[int]:
        """The slots as positions in the flattened instruction list of all computations."""
        first = 0
        for computation in self.module.computations:
            if computation.id == self.module.entry_computation_id:
                break
            first += len(computation.instructions)
        return [first + slot for slot in self.slots]

    def opcode(self, node: int) -> str:
        """Returns a node's opcode."""
        return self.nodes[node].opcode

    def elements(self, node: int) -> int:
        """Returns the number of elements of a node's output."""
        return math.prod(self.nodes[node].shape.dimensions)

    def fusible(self, node: int) -> bool:
        """Returns whether a loop fusion can compute the node, which has one array as output."""
        instruction = self.nodes[node]
        return instruction.opcode in FUSIBLE and not instruction.shape.tuple_shapes

    def is_scalar_constant(self, node: int) -> bool:
        """Returns whether a node is a constant of one element, which every kernel copies."""
        return self.opcode(node) == "constant" and self.elements(node) == 1


def packed(graph: FusionGraph, fused: frozenset[int]) -> bytes:
    """Returns one bit per slot, the lowest bit of the first byte first, padded with zeros."""
    bits = sum(1 << slot for slot, node in enumerate(graph.slots) if node in fused)
    return bits.to_bytes((len(graph.slots) + 7) // 8, "little")


def unpacked(graph: FusionGraph, content: bytes) -> frozenset[int]:
    """Returns the nodes whose bits are set.

    Raises:
        ValueError: if the number of bytes is wrong, or a bit past the last slot is set.
    """
    size = (len(graph.slots) + 7) // 8
    bits = int.from_bytes(content, "little")
    if len(content) != size or bits >> len(graph.slots):
        raise ValueError(
            f"a configuration of {len(graph.slots)} slots has {size} bytes, and zeros in the bits "
            f"past the last slot; {len(content)} bytes were given: {content.hex()}"
        )
    return frozenset(node for slot, node in enumerate(graph.slots) if bits >> slot & 1)
