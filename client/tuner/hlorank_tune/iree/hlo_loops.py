"""Loops with a body of scalars (``linalg.generic``) as HLO instructions on arrays."""

from collections.abc import Callable, Sequence
from typing import Any

from hlorank_tune.iree.hlo_axes import (
    Axis,
    Nest,
    Spread,
    joined,
    over,
    plain,
    product,
    spread_of,
    sums_of,
    windowed,
)
from hlorank_tune.iree.hlo_scalars import OPCODES, element_of, scalar_node
from hlorank_tune.iree.hlo_text import Node, UnsupportedDispatch, Writer, braces, literal, neutral

_WIDENING = ("arith.extf", "arith.extsi")


class Loops:
    """One ``linalg.generic``: its body is evaluated on whole arrays, and only as far as needed."""

    def __init__(self, write: Writer, operation: Any, node_of: Callable[[Any], Node]):
        self._write = write
        self._operation = operation
        self._node_of = node_of
        self._body = operation.regions[0].blocks[0]
        maps = operation.attributes["indexing_maps"]
        self._sums = [sums_of(attribute.value) for attribute in maps]
        shapes = [_shape(operand) for operand in operation.operands]
        self._extents = _extents(self._sums, shapes)
        results = len(operation.results)
        self._inputs = len(shapes) - results
        self._outs = list(self._body.arguments)[self._inputs :]
        out = self._sums[self._inputs]
        self._out = tuple(total.terms for total in out if total.terms)
        self._nest = Nest(write, self._extents, self._out)
        self._reduces = len(self._out) < len(self._extents)
        self._values: dict[Any, Spread] = {}
        last = list(self._body.operations)[-1]
        self._yielded = list(last.operands)
        self._inside = {result for o in self._body.operations for result in o.operation.results}

    def results(self) -> list[Node]:
        """Returns the node of each result of the operation."""
        if not self._reduces:
            return [self._stored(self._value(value), i) for i, value in enumerate(self._yielded)]
        if any(self._outs_of(v) - {self._outs[i]} for i, v in enumerate(self._yielded)):
            return self._reduced_together()
        return [self._stored(self._reduced(i), i) for i in range(len(self._yielded))]

    def _stored(self, value: Spread, result: int) -> Node:
        """Brings a value to the shape of a result."""
        sums = self._sums[self._inputs + result]
        axes = [total.terms for total in sums if total.terms]
        if any(total.terms != axis for total, axis in zip(sums, axes, strict=False)):
            raise UnsupportedDispatch("linalg.generic", "the result is not written in order")
        extent = {plain(loop): extent for loop, extent in self._extents.items()}
        node = over(self._write, value, axes, extent)
        return self._write.reshape(node, _shape(self._operation.results[result]))

    def _value(self, value: Any) -> Spread:
        """Evaluates a scalar of the body for all iterations."""
        if value not in self._values:
            self._values[value] = self._evaluated(value)
        return self._values[value]

    def _evaluated(self, value: Any) -> Spread:
        if value in self._body.arguments:
            return self._operand(list(self._body.arguments).index(value))
        if value not in self._inside:
            return Spread(self._node_of(value), ())
        operation = value.owner.operation
        if operation.name == "linalg.index":
            loop = operation.attributes["dim"].value
            kind = ("s32", [self._extents[loop]])
            return Spread(self._write.add("iota", kind, (), ", iota_dimension=0"), (plain(loop),))
        if operation.name == "tensor.extract":
            return self._extracted(operation)
        nodes, axes = joined(self._write, [self._value(o) for o in operation.operands], self._out)
        return Spread(scalar_node(self._write, operation, nodes), axes)

    def _operand(self, number: int) -> Spread:
        node = self._node_of(self._operation.operands[number])
        return spread_of(self._write, node, self._sums[number], self._extents)

    def _extracted(self, operation: Any) -> Spread:
        """Reads an array at computed indices: a gather."""
        table = self._node_of(operation.operands[0])
        indices = [self._value(index) for index in list(operation.operands)[1:]]
        whole = [
            value.node.opcode == "iota" and value.node.shape == (size,) and len(value.axes) == 1
            for value, size in zip(indices, table.shape, strict=True)
        ]
        started = [i for i, all_ in enumerate(whole) if not all_]
        kept = [indices[i].axes[0] for i, all_ in enumerate(whole) if all_]
        if not started:
            return Spread(table, tuple(kept))
        starts, axes = joined(self._write, [indices[i] for i in started], self._out)
        if set(axes) & set(kept):
            raise UnsupportedDispatch(operation.name, "the indices are not independent")
        start, shape = starts[0], starts[0].shape
        if len(starts) > 1:
            columns = [self._write.reshape(one, (*shape, 1)) for one in starts]
            text = f", dimensions={{{len(shape)}}}"
            start = self._write.add("concatenate", ("s32", (*shape, len(starts))), columns, text)
        result = (*axes, *kept)
        sizes = [1 if i in started else n for i, n in enumerate(table.shape)]
        text = f", offset_dims={braces(range(len(axes), len(result)))}"
        text += f", collapsed_slice_dims={braces(started)}, start_index_map={braces(started)}"
        text += f", index_vector_dim={len(shape)}, slice_sizes={braces(sizes)}"
        kind = (table.element, self._nest.shape(result))
        return Spread(self._write.add("gather", kind, [table, start], text), result)

    def _outs_of(self, value: Any) -> set[Any]:
        """Returns the accumulators that a scalar of the body depends on."""
        if value in self._body.arguments:
            return {value} & set(self._outs)
        if value not in self._inside:
            return set()
        return set().union(*(self._outs_of(o) for o in value.owner.operation.operands))

    def _reduced(self, result: int) -> Spread:
        """Reduces one value with an accumulator of its own."""
        operation = self._yielded[result].owner.operation
        opcode = OPCODES.get(operation.name, operation.name)
        operands = list(operation.operands)
        if len(operands) != 2 or self._outs[result] not in operands:
            raise UnsupportedDispatch(operation.name, "the reduction has several steps")
        element = element_of(self._outs[result].type)
        opcode = {"pred add": "or", "pred multiply": "and"}.get(f"{element} {opcode}", opcode)
        start = neutral(opcode, element)
        if start is None:
            raise UnsupportedDispatch(operation.name, "the reduction has no neutral element")
        added = operands[1 - operands.index(self._outs[result])]
        initial = self._operand(self._inputs + result)
        value = self._product(added, element) if opcode == "add" else None
        if value is None:
            value = self._complete(self._value(added))
            zero = self._write.constant(element, start)
            computation = reducer(self._write, opcode, element)
            if any(len(axis) > 1 for axis in value.axes):
                value = windowed(self._nest, value, zero, computation)
            else:
                kept = tuple(axis for axis in value.axes if axis in self._out)
                dimensions = self._reduced_dimensions(value.axes)
                text = f", dimensions={dimensions}, to_apply={computation}"
                kind = (element, self._nest.shape(kept))
                value = Spread(self._write.add("reduce", kind, [value.node, zero], text), kept)
        if _constant(initial.node) == literal(element, start):
            return value
        nodes, axes = joined(self._write, [value, initial], self._out)
        return Spread(self._write.like(opcode, nodes), axes)

    def _product(self, added: Any, element: str) -> Spread | None:
        """Returns the sum of a product as a dot or a convolution, if it is one."""
        operation = added.owner.operation if added in self._inside else None
        if operation is None or operation.name not in ("arith.mulf", "arith.muli"):
            return None
        if operation.operands[0] == operation.operands[1]:
            return None
        # Factors before they are widened, which products do themselves.
        narrow = [
            factor.owner.operation.operands[0]
            if factor in self._inside and factor.owner.operation.name in _WIDENING
            else factor
            for factor in operation.operands
        ]
        left, right = map(self._value, narrow)
        if left.node.element != right.node.element:
            left, right = map(self._value, operation.operands)
        return product(self._nest, (left, right), element)

    def _reduced_dimensions(self, axes: Sequence[Axis]) -> str:
        return braces(i for i, axis in enumerate(axes) if axis not in self._out)

    def _complete(self, value: Spread) -> Spread:
        """Repeats a value along the reduced loops that it does not depend on."""
        present = {loop for axis in value.axes for loop, _ in axis}
        missing = [loop for loop in self._extents if plain(loop) not in self._out]
        missing = [loop for loop in missing if loop not in present]
        if not missing:
            return value
        axes = (*value.axes, *map(plain, missing))
        shape = [*value.node.shape, *(self._extents[loop] for loop in missing)]
        node = self._write.broadcast(value.node, shape, range(len(value.axes)))
        return Spread(node, axes)

    def _reduced_together(self) -> list[Node]:
        """Reduces several values whose accumulators depend on each other, such as argmax."""
        added = self._added()
        if [v.type for v in added] != [out.type for out in self._outs]:
            raise UnsupportedDispatch(
                "linalg.generic", "the reduction of several values is too general"
            )
        nodes, axes = joined(self._write, [self._value(v) for v in added], self._out)
        initial = [self._operand(self._inputs + i).node for i in range(len(added))]
        initial = [
            node.operands[0] if node.opcode == "broadcast" and _constant(node) else node
            for node in initial
        ]
        kept = tuple(axis for axis in axes if axis in self._out)
        shape = self._nest.shape(kept)
        kinds = [(node.element, shape) for node in nodes]
        text = f", dimensions={self._reduced_dimensions(axes)}"
        text += f", to_apply={self._combiner(added)}"
        result = self._write.several("reduce", kinds, [*nodes, *initial], text)
        elements = [self._write.element(result, i, kind) for i, kind in enumerate(kinds)]
        return [self._stored(Spread(node, kept), i) for i, node in enumerate(elements)]

    def _added(self) -> list[Any]:
        """Returns the scalars that enter the accumulators, in the order of the accumulators."""
        found: list[Any] = []
        waiting = list(self._yielded)
        while waiting:
            value = waiting.pop(0)
            if value in self._outs:
                continue
            if self._outs_of(value):
                waiting += list(value.owner.operation.operands)
            elif value not in found:
                found.append(value)
        order = {str(out.type): i for i, out in enumerate(self._outs)}
        return sorted(found, key=lambda v: order.get(str(v.type), len(order)))

    def _combiner(self, added: Sequence[Any]) -> str:
        write = self._write.nested()
        known = {v: write.parameter(element_of(v.type), ()) for v in [*self._outs, *added]}

        def node_of(value: Any) -> Node:
            if value not in known:
                operation = value.owner.operation
                known[value] = scalar_node(write, operation, [*map(node_of, operation.operands)])
            return known[value]

        root = write.tuple_of([node_of(value) for value in self._yielded])
        return self._write.computation(write, root, "combine")


def reducer(write: Writer, opcode: str, element: str) -> str:
    """Returns the computation that reduces by a binary instruction."""
    nested = write.nested()
    operands = [nested.parameter(element, ()) for _ in range(2)]
    return write.computation(nested, nested.like(opcode, operands), opcode)


def _constant(node: Node) -> str:
    """Returns the literal of a constant that may be broadcast; else an empty text."""
    node = node.operands[0] if node.opcode == "broadcast" else node
    return node.literal if node.opcode == "constant" else ""


def _shape(value: Any) -> tuple[int, ...]:
    kind = value.type
    return tuple(kind.shape) if hasattr(kind, "shape") else ()


def _extents(sums: Sequence[Any], shapes: Sequence[tuple[int, ...]]) -> dict[int, int]:
    """Returns the number of iterations of each loop."""
    found: dict[int, int] = {}
    for totals, shape in zip(sums, shapes, strict=True):
        for total, extent in zip(totals, shape, strict=True):
            if len(total.terms) == 1 and total.terms[0][1] == 1 and not total.constant:
                found[total.terms[0][0]] = extent
    loops: list[Axis] = [total.terms for totals in sums for total in totals]
    if any(loop not in found for axis in loops for loop, _ in axis):
        raise UnsupportedDispatch("linalg.generic", "the extent of a loop is unknown")
    return dict(sorted(found.items()))
