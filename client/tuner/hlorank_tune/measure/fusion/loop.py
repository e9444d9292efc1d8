"""Repeats a kernel inside one program, since a call takes longer than most kernels."""

from typing import Any

from hlorank_tune.measure.fusion.builder import Builder
from hlorank_tune.measure.schema import ShapeProto

_PRED = 1
_S32 = 4
_TUPLE = 13
"""Values of xla.PrimitiveType."""
_FIRST_INPUT = 3
"""Position in the loop's state, after the count, the limit and the last output."""


def looped(kernel: Any) -> Any:
    """Returns a module that computes a kernel's module repeatedly.

    Its parameters are the number of repetitions (s32), an array of the output's shape, and the
    kernel's parameters. Its result is the last output.
    """
    entry = next(c for c in kernel.computations if c.id == kernel.entry_computation_id)
    builder = Builder("loop", kernel.computations)
    state = _State(entry)
    body = _body(builder, entry, state)
    condition = _condition(builder, state)
    main = builder.computation("main")
    values = [builder.parameter(main, n, s) for n, s in enumerate(state.shapes[1:])]
    start = builder.add(main, "tuple", state.shape, [builder.number(main, 0), *values])
    loop = builder.add(main, "while", state.shape, [start.id])
    loop.called_computation_ids.extend([body, condition])
    return builder.finish_module(main, _element(builder, main, loop, 2))


class _State:
    """The shapes of the values that the loop carries."""

    def __init__(self, entry: Any):
        parameters = [i for i in entry.instructions if i.opcode == "parameter"]
        self.parameters = sorted(parameters, key=lambda p: p.parameter_number)
        number = ShapeProto(element_type=_S32)
        output = next(i.shape for i in entry.instructions if i.id == entry.root_id)
        self.shapes = [number, number, output, *(p.shape for p in self.parameters)]
        self.shape = ShapeProto(element_type=_TUPLE, tuple_shapes=self.shapes)


def _body(builder: Builder, entry: Any, state: _State) -> int:
    for instruction in entry.instructions:
        for called in instruction.called_computation_ids:
            builder.called(called)
    body = builder.computation("body")
    renamed = {}
    whole = builder.add(body, "parameter", state.shape)
    count, limit = (_element(builder, body, whole, n) for n in (0, 1))
    for place, parameter in enumerate(state.parameters):
        renamed[parameter.id] = _element(builder, body, whole, _FIRST_INPUT + place)
    inputs = list(renamed.values())
    for instruction in entry.instructions:
        if instruction.opcode != "parameter":
            renamed[instruction.id] = builder.copy(body, instruction, renamed)
    one = builder.number(body, 1)
    more = builder.add(body, "add", state.shapes[0], [count, one]).id
    values = [more, limit, renamed[entry.root_id], *inputs]
    builder.finish(body, builder.add(body, "tuple", state.shape, values).id)
    return body.id


def _condition(builder: Builder, state: _State) -> int:
    condition = builder.computation("condition")
    whole = builder.add(condition, "parameter", state.shape)
    operands = [_element(builder, condition, whole, n) for n in (0, 1)]
    less = builder.add(condition, "compare", ShapeProto(element_type=_PRED), operands)
    less.comparison_direction = "LT"
    builder.finish(condition, less.id)
    return condition.id


def _element(builder: Builder, computation: Any, whole: Any, index: int) -> int:
    shape = whole.shape.tuple_shapes[index]
    element = builder.add(computation, "get-tuple-element", shape, [whole.id])
    element.tuple_index = index
    return element.id
