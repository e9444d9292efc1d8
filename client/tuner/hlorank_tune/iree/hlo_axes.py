"""Arrays over the loops of an operation: which loop each dimension of a node follows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from iree.compiler import ir

from hlorank_tune.iree.hlo_text import Node, UnsupportedDispatch, Writer

Axis = tuple[tuple[int, int], ...]
"""A sum of (loop, step): one term is a loop of the operation, two are a window that moves."""


@dataclass(frozen=True)
class Spread:
    """A node and the axis of each of its dimensions."""

    node: Node
    axes: tuple[Axis, ...]


def plain(loop: int) -> Axis:
    """Returns the axis that follows one loop."""
    return ((loop, 1),)


def spread_of(write: Writer, node: Node, sums: Sequence["Sum"], extents: dict[int, int]) -> Spread:
    """Reads a node by the results of an indexing map."""
    for dimension, total in enumerate(sums):
        node = _aligned_dimension(write, node, dimension, total, extents)
    kept = [i for i, total in enumerate(sums) if total.terms]
    axes = tuple(
        plain(total.terms[0][0]) if len(total.terms) == 1 else total.terms
        for total in (sums[i] for i in kept)
    )
    if len(set(axes)) < len(axes):
        raise UnsupportedDispatch("linalg.generic", "an operand is read along its diagonal")
    return Spread(write.reshape(node, [node.shape[i] for i in kept]), axes)


@dataclass(frozen=True)
class Sum:
    """A result of an indexing map."""

    terms: Axis
    constant: int


def sums_of(affine_map: Any) -> list[Sum]:
    """Returns the results of an indexing map as sums of loops."""
    return [_sum(result) for result in affine_map.results]


def _sum(expression: Any) -> Sum:
    terms: dict[int, int] = {}
    constant = _collect(expression, 1, terms)
    return Sum(tuple(sorted((d, c) for d, c in terms.items() if c)), constant)


def _collect(expression: Any, factor: int, terms: dict[int, int]) -> int:
    """Adds the loops of an expression to ``terms``, and returns its constant."""
    if isinstance(expression, ir.AffineDimExpr):
        loop = expression.position
        terms[loop] = terms.get(loop, 0) + factor
        return 0
    if isinstance(expression, ir.AffineConstantExpr):
        return factor * expression.value
    if isinstance(expression, ir.AffineAddExpr):
        left = _collect(expression.lhs, factor, terms)
        return left + _collect(expression.rhs, factor, terms)
    if isinstance(expression, ir.AffineMulExpr) and isinstance(
        expression.rhs, ir.AffineConstantExpr
    ):
        return _collect(expression.lhs, factor * expression.rhs.value, terms)
    raise UnsupportedDispatch("linalg.generic", f"the index {expression} is not a sum of loops")


def _aligned_dimension(
    write: Writer, node: Node, dimension: int, total: Sum, extents: dict[int, int]
) -> Node:
    """Takes the elements of one dimension that the loops read; a window keeps its overlap."""
    steps = [step for _, step in total.terms]
    if (len(steps) > 1 and min(steps) < 0) or len(steps) > 2:
        raise UnsupportedDispatch("linalg.generic", f"the index {total.terms} is not a window")
    if len(steps) > 1 and not total.constant:
        return node
    reach = sum(abs(step) * (extents[loop] - 1) for loop, step in total.terms) + 1
    reversed_ = steps[:1] < [0] and bool(steps)
    first = total.constant - (reach - 1 if reversed_ else 0)
    stride = abs(steps[0]) if len(steps) == 1 else 1
    bounds = [(0, n, 1) for n in node.shape]
    bounds[dimension] = (first, first + reach, stride)
    node = write.slice(node, bounds)
    return write.like("reverse", [node], f", dimensions={{{dimension}}}") if reversed_ else node


def joined(
    write: Writer, values: Sequence[Spread], order: Sequence[Axis]
) -> tuple[list[Node], tuple[Axis, ...]]:
    """Broadcasts values to one set of axes; ``order`` decides where they disagree."""
    union = list(dict.fromkeys(axis for value in values for axis in value.axes))
    loops = [loop for axis in union for loop, _ in axis]
    if len(set(loops)) < len(loops):
        raise UnsupportedDispatch("linalg.generic", "a window is combined with its own loops")
    wanted = tuple(sorted(union, key=lambda a: order.index(a) if a in order else len(order)))
    whole = [value.axes for value in values if len(value.axes) == len(union)]
    axes = wanted if not whole or wanted in whole else whole[0]
    extent = {a: n for value in values for a, n in zip(value.axes, value.node.shape, strict=True)}
    return [over(write, value, axes, extent) for value in values], axes


def over(write: Writer, value: Spread, axes: Sequence[Axis], extent: dict[Axis, int]) -> Node:
    """Broadcasts or transposes a value to the axes."""
    positions = [list(axes).index(axis) for axis in value.axes]
    return write.broadcast(value.node, [extent[axis] for axis in axes], positions)


def arranged(
    write: Writer, value: Spread, groups: Sequence[Sequence[Axis]]
) -> tuple[Node, list[int]]:
    """Makes each group of axes one dimension, of size 1 if the group is empty.

    Returns the node, and the number of the group of each dimension.
    """
    order, flat = group_order(value.axes, groups)
    extent = dict(zip(value.axes, value.node.shape, strict=True))
    node = write.transpose(value.node, [value.axes.index(axis) for axis in flat])
    return write.reshape(node, group_shape(groups, order, extent)), order


def group_order(
    axes: Sequence[Axis], groups: Sequence[Sequence[Axis]]
) -> tuple[list[int], list[Axis]]:
    """Returns the groups in the order of ``axes``, and their axes one after the other."""
    place = list(axes).index
    order = sorted(range(len(groups)), key=lambda g: min(map(place, groups[g]), default=len(axes)))
    return order, [axis for g in order for axis in groups[g]]


def group_shape(
    groups: Sequence[Sequence[Axis]], order: Iterable[int], extent: dict[Axis, int]
) -> list[int]:
    """Returns the number of elements of each group."""
    shape = []
    for group in order:
        size = 1
        for axis in groups[group]:
            size *= extent[axis]
        shape.append(size)
    return shape
