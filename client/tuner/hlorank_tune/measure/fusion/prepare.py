"""Prepares a module whose fusion is chosen: takes its fusions apart, and makes it logical.

In logical form every array is row-major, and layouts have no instructions. The compiler expresses
changes of layout as bitcasts and copies, whose meaning depends on layouts. A loop fusion loses
layouts, so a bitcast becomes a reshape between transposes to and from the order in memory, and a
copy that changes only the layout becomes its operand. A bitcast that also changes the type of the
elements is a bitcast-convert as well, as it was before compilation.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from math import prod
from typing import Any

from hlorank_tune.measure.fusion.compilation import OWN_FUSION
from hlorank_tune.measure.fusion.graph import FusionGraph
from hlorank_tune.measure.fusion.kernels import Configuration, compilers
from hlorank_tune.measure.schema import HloInstructionProto, HloModuleProto, strip

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
    instructions: list[Any] = []
    written: set[int] = set()
    known: dict[bytes, int] = {}

    def append(computation: Any, arguments: list[int] | None) -> int:
        """Appends a computation and returns the id of its result.

        ``arguments`` are the values of a fusion's parameters, and None for the entry computation.
        """
        renamed: dict[int, int] = {}
        for instruction in computation.instructions:
            if arguments is not None and instruction.opcode == "parameter":
                renamed[instruction.id] = arguments[instruction.parameter_number]
                continue
            operands = [renamed[operand] for operand in instruction.operand_ids]
            if instruction.opcode == "fusion":
                called = computations[instruction.called_computation_ids[0]]
                renamed[instruction.id] = append(called, operands)
            else:
                copy = HloInstructionProto()
                copy.CopyFrom(instruction)
                for field in _FIELDS_OF_A_NAME:
                    copy.ClearField(field)
                del copy.control_predecessor_ids[:]
                copy.operand_ids[:] = operands
                key = copy.SerializeToString(deterministic=True)
                if key not in known or copy.opcode == "rng":
                    copy.id = len(instructions) + 1
                    copy.name = f"{copy.opcode}.{copy.id}"
                    instructions.append(copy)
                    known[key] = copy.id
                renamed[instruction.id] = known[key]
            if arguments is None:
                written.add(renamed[instruction.id])
        return renamed[computation.root_id]

    root = append(entry, None)
    del entry.instructions[:]
    entry.instructions.extend(instructions)
    entry.root_id = root
    # Computations that are no longer called are removed.
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
    return strip(module), frozenset(written)


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
    for computation in result.computations:
        own = _rewritten(computation)
        if computation.id == result.entry_computation_id:
            renamed = own
    return result, frozenset(renamed.get(identity, identity) for identity in written)


def _rewritten(computation: Any) -> dict[int, int]:
    """Puts a computation into logical form, and returns the new ids of its instructions."""
    originals = list(computation.instructions)
    shapes = {i.id: i.shape for i in originals}
    ids = count(max(shapes) + 1)
    instructions: list[Any] = []
    known: dict[tuple, int] = {}
    renamed: dict[int, int] = {}

    def append(opcode: str, operand: int, like: Any, sizes: Sequence, order: Sequence = ()) -> int:
        key = opcode, operand, tuple(sizes), tuple(order), like.element_type
        if key not in known:
            new = HloInstructionProto(opcode=opcode, id=next(ids), operand_ids=[operand])
            new.name = f"{opcode}.{new.id}"
            new.shape.CopyFrom(like)
            new.shape.dimensions[:] = sizes
            new.dimensions[:] = order
            instructions.append(new)
            known[key] = new.id
        return known[key]

    def transposed(value: int, shape: Any, order: Sequence[int], sizes: Sequence[int]) -> int:
        is_same = list(order) == list(range(len(order)))
        return value if is_same else append("transpose", value, shape, sizes, order)

    def bitcast(instruction: Any, value: int) -> int:
        """Transposes to the order in memory, converts, reshapes, and transposes back."""
        source = shapes[instruction.operand_ids[0]]
        target = instruction.shape
        into, out = (list(reversed(s.layout.minor_to_major)) for s in (source, target))
        sizes = [source.dimensions[d] for d in into]
        wanted = [target.dimensions[d] for d in out]
        value = transposed(value, source, into, sizes)
        if source.element_type != target.element_type:
            if prod(sizes) != prod(wanted):
                raise ValueError(f"{instruction.name} changes the number of elements")
            value = append("bitcast-convert", value, target, sizes)
        if wanted != sizes:
            value = append("reshape", value, target, wanted)
        back = [out.index(d) for d in range(len(out))]
        return transposed(value, target, back, target.dimensions)

    for instruction in originals:
        operands = [renamed.get(o, o) for o in instruction.operand_ids]
        shape = instruction.shape
        match instruction.opcode:
            case "copy" if not shape.tuple_shapes:
                renamed[instruction.id] = operands[0]
            case "bitcast":
                renamed[instruction.id] = bitcast(instruction, operands[0])
            case "reshape" | "transpose" as opcode:
                order = instruction.dimensions
                renamed[instruction.id] = append(
                    opcode, operands[0], shape, shape.dimensions, order
                )
            case _:
                copy = HloInstructionProto()
                copy.CopyFrom(instruction)
                copy.operand_ids[:] = operands
                instructions.append(copy)
    root = computation.root_id
    del computation.instructions[:]
    computation.instructions.extend(instructions)
    computation.root_id = renamed.get(root, root)
    for instruction in computation.instructions:
        set_row_major(instruction.shape)
    return renamed


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
