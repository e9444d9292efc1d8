"""Prepares a module whose fusion is chosen: takes its fusions apart, and makes it logical.

In logical form every array is row-major, and layouts have no instructions. The compiler expresses
changes of layout as bitcasts and copies, whose meaning depends on layouts. A loop fusion loses
layouts, so a bitcast becomes a reshape between transposes to and from the order in memory, and a
copy that changes only the layout becomes its operand. A bitcast that also changes the type of the
elements is a bitcast-convert as well, as it was before compilation.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from hlorank_tune.measure.fusion.compilation import OWN_FUSION
from hlorank_tune.measure.fusion.graph import FusionGraph
from hlorank_tune.measure.fusion.kernels import Configuration, compilers
from hlorank_tune.measure.schema import HloInstructionProto, HloModuleProto

_FIELDS_OF_A_COMPILATION = (
    "schedule",
    "input_output_alias",
    "buffer_donor",
    "stack_frame_index",
    "id",
)
_FIELDS_OF_A_NAME = ("metadata", "backend_config", "frontend_attributes", "name", "id")


def inlined(compiled: Any) -> tuple[Any, frozenset[int]]:
    """Returns a module without fusions, and the ids of the instructions that had been written.

    Equal instructions become one, since the compiler computes a value again in every fusion that
    reads it.
    """
    module = HloModuleProto.FromString(compiled.SerializeToString())
    for field in _FIELDS_OF_A_COMPILATION:
        module.ClearField(field)
    computations = {c.id: c for c in module.computations}
    entry = computations[module.entry_computation_id]
    inliner = _Inliner(computations)
    root = inliner.append(entry, None)
    del entry.instructions[:]
    entry.instructions.extend(inliner.instructions)
    entry.root_id = root
    _keep_called(module, computations)
    _remove_metadata(module)
    return module, frozenset(inliner.written)


class _Inliner:
    def __init__(self, computations: dict[int, Any]):
        self._computations = computations
        self._known: dict[bytes, int] = {}
        self.instructions: list[Any] = []
        self.written: set[int] = set()

    def append(self, computation: Any, arguments: list[int] | None) -> int:
        """Appends a computation and returns the id of its result.

        ``arguments`` are the values of a fusion's parameters, and None for the entry computation.
        """
        renamed: dict[int, int] = {}
        for instruction in computation.instructions:
            if arguments is not None and instruction.opcode == "parameter":
                renamed[instruction.id] = arguments[instruction.parameter_number]
                continue
            renamed[instruction.id] = self._value(instruction, renamed)
            if arguments is None:
                self.written.add(renamed[instruction.id])
        return renamed[computation.root_id]

    def _value(self, instruction: Any, renamed: dict[int, int]) -> int:
        operands = [renamed[operand] for operand in instruction.operand_ids]
        if instruction.opcode == "fusion":
            return self.append(self._computations[instruction.called_computation_ids[0]], operands)
        copy = HloInstructionProto()
        copy.CopyFrom(instruction)
        for field in _FIELDS_OF_A_NAME:
            copy.ClearField(field)
        del copy.control_predecessor_ids[:]
        copy.operand_ids[:] = operands
        return self._distinct(copy)

    def _distinct(self, copy: Any) -> int:
        key = copy.SerializeToString(deterministic=True)
        if key not in self._known or copy.opcode == "rng":
            copy.id = len(self.instructions) + 1
            copy.name = f"{copy.opcode}.{copy.id}"
            self.instructions.append(copy)
            self._known[key] = copy.id
        return self._known[key]


def _keep_called(module: Any, computations: dict[int, Any]) -> None:
    """Removes computations that are no longer called."""
    kept = set()
    reached = [module.entry_computation_id]
    while reached:
        identity = reached.pop()
        if identity not in kept:
            kept.add(identity)
            for instruction in computations[identity].instructions:
                reached += instruction.called_computation_ids
    for position in reversed(range(len(module.computations))):
        if module.computations[position].id not in kept:
            del module.computations[position]


def _remove_metadata(module: Any) -> None:
    for computation in module.computations:
        for instruction in computation.instructions:
            instruction.ClearField("metadata")
            instruction.ClearField("frontend_attributes")


def set_row_major(shape: Any) -> None:
    """Sets the row-major layout of a shape, or of all shapes of a tuple."""
    if shape.tuple_shapes:
        for part in shape.tuple_shapes:
            set_row_major(part)
        return
    shape.ClearField("layout")
    shape.layout.minor_to_major.extend(reversed(range(len(shape.dimensions))))


def logical(module: Any, written: frozenset[int]) -> tuple[Any, frozenset[int]]:
    """Returns a module without fusions in logical form, and the new ids of its written nodes."""
    result = HloModuleProto.FromString(module.SerializeToString())
    renamed: dict[int, int] = {}
    for computation, original in zip(result.computations, module.computations, strict=True):
        rewriter = _Rewriter(original)
        rewriter.apply(computation)
        if computation.id == result.entry_computation_id:
            renamed = rewriter.renamed
    return result, frozenset(renamed.get(identity, identity) for identity in written)


class _Rewriter:
    def __init__(self, original: Any):
        self._original = original
        self._shapes = {i.id: i.shape for i in original.instructions}
        self._next = max(i.id for i in original.instructions) + 1
        self._written: list[Any] = []
        self._known: dict[tuple, int] = {}
        self.renamed: dict[int, int] = {}

    def apply(self, computation: Any) -> None:
        """Replaces the instructions of a copy of the computation."""
        for instruction in self._original.instructions:
            self._rewrite(instruction)
        root = self._original.root_id
        del computation.instructions[:]
        computation.instructions.extend(self._written)
        computation.root_id = self.renamed.get(root, root)
        for instruction in computation.instructions:
            set_row_major(instruction.shape)

    def _rewrite(self, instruction: Any) -> None:
        operands = [self.renamed.get(o, o) for o in instruction.operand_ids]
        match instruction.opcode:
            case "copy" if not instruction.shape.tuple_shapes:
                self.renamed[instruction.id] = operands[0]
            case "bitcast":
                self.renamed[instruction.id] = self._bitcast(instruction, operands[0])
            case "reshape" | "transpose":
                self.renamed[instruction.id] = self._append(
                    instruction.opcode,
                    operands[0],
                    instruction.shape,
                    (instruction.shape.dimensions, instruction.dimensions),
                )
            case _:
                copy = HloInstructionProto()
                copy.CopyFrom(instruction)
                copy.operand_ids[:] = operands
                self._written.append(copy)

    def _bitcast(self, instruction: Any, value: int) -> int:
        """Transposes to the order in memory, converts, reshapes, and transposes back."""
        source = self._shapes[instruction.operand_ids[0]]
        target = instruction.shape
        into, out = (list(reversed(s.layout.minor_to_major)) for s in (source, target))
        sizes = [source.dimensions[d] for d in into]
        wanted = [target.dimensions[d] for d in out]
        value = self._transpose(value, source, into, sizes)
        if source.element_type != target.element_type:
            if prod(sizes) != prod(wanted):
                raise ValueError(f"{instruction.name} changes the number of elements")
            value = self._append("bitcast-convert", value, target, (sizes, ()))
        if wanted != sizes:
            value = self._append("reshape", value, target, (wanted, ()))
        back = [out.index(d) for d in range(len(out))]
        return self._transpose(value, target, back, target.dimensions)

    def _transpose(self, value: int, shape: Any, order: Sequence[int], sizes: Sequence[int]) -> int:
        if list(order) == list(range(len(order))):
            return value
        return self._append("transpose", value, shape, (sizes, order))

    def _append(
        self, opcode: str, operand: int, like: Any, sizes_and_order: tuple[Sequence, Sequence]
    ) -> int:
        sizes, order = map(tuple, sizes_and_order)
        key = opcode, operand, sizes, order, like.element_type
        if key not in self._known:
            new = HloInstructionProto(opcode=opcode, id=self._next, operand_ids=[operand])
            new.name = f"{opcode}.{new.id}"
            new.shape.CopyFrom(like)
            new.shape.dimensions[:] = sizes
            new.dimensions[:] = order
            self._next += 1
            self._written.append(new)
            self._known[key] = new.id
        return self._known[key]


@dataclass(frozen=True)
class Prepared:
    """A module that the compiler optimized, before fusion."""

    graph: FusionGraph
    written: frozenset[int]
    """The nodes that the compiler writes to memory."""

    @property
    def compilers(self) -> Configuration:
        """The compiler's own configuration, as nearly as kernels with one output can have it."""
        return compilers(self.graph, self.written)


def prepare(module: Any) -> Prepared:
    """Compiles an HloModuleProto and takes its fusions apart.

    The compiler's fusion stays on: without it, XLA:CPU computes wrong results for some programs.
    """
    from hlorank_tune.measure.execute import Executable

    return from_compiled(Executable(module, (), OWN_FUSION).optimized())


def from_compiled(optimized: Any) -> Prepared:
    """Prepares a module that was compiled with ``OWN_FUSION``."""
    flat, written = inlined(optimized)
    module, written = logical(flat, written)
    graph = FusionGraph(module)
    nodes = (graph.number.get(identity) for identity in written)
    return Prepared(graph, frozenset(node for node in nodes if node is not None))
