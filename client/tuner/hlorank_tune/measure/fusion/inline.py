"""Takes the fusions of a compiled module apart."""

from typing import Any

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
