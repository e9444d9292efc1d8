"""Builds HLO modules computation by computation."""

from collections.abc import Iterable, Mapping
from typing import Any

from hlorank_tune.measure.fusion.logical import set_row_major
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
