"""Arrays over the loops of an operation: which loop each dimension of a node follows.

Sums of products of such arrays are dots and convolutions.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from iree.compiler import ir

from hlorank_tune.iree.hlo_text import Node, UnsupportedDispatch, Writer, braces

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
    found = []
    for expression in affine_map.results:
        terms: dict[int, int] = {}
        constant = _collect(expression, 1, terms)
        found.append(Sum(tuple(sorted((d, c) for d, c in terms.items() if c)), constant))
    return found


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
    return [prod(extent[axis] for axis in groups[group]) for group in order]


@dataclass(frozen=True)
class Nest:
    """The loops of an operation."""

    write: Writer
    extents: dict[int, int]
    """The number of iterations of each loop."""
    out: tuple[Axis, ...]
    """The loops of the result, in the order of its dimensions."""

    def shape(self, axes: Sequence[Axis]) -> list[int]:
        """Returns the extents of axes that follow one loop each."""
        return [self.extents[axis[0][0]] for axis in axes]


def product(nest: Nest, factors: tuple[Spread, Spread], element: str) -> Spread | None:
    """Sums the product of two values over the loops that the result lacks.

    Returns None if the sum is neither a dot nor a convolution.
    """
    if any(len(axis) > 1 for factor in factors for axis in factor.axes):
        return _convolution(nest, factors, element)
    left, right = factors
    summed = [axis for axis in left.axes if axis not in nest.out]
    if not summed or set(summed) != {axis for axis in right.axes if axis not in nest.out}:
        return None
    batch = [axis for axis in left.axes if axis in right.axes and axis in nest.out]
    free = [[a for a in factor.axes if a in nest.out and a not in batch] for factor in factors]
    if batch and not any(free):
        return None  # an elementwise product and a sum
    if list(nest.out) == [*batch, *free[1], *free[0]]:
        left, right, free = right, left, free[::-1]
    order = (*batch, *free[0], *free[1])
    text = _contracted("lhs", left, batch, summed) + _contracted("rhs", right, batch, summed)
    result = (element, nest.shape(order))
    return Spread(nest.write.add("dot", result, [left.node, right.node], text), order)


def _contracted(side: str, factor: Spread, batch: list[Axis], summed: list[Axis]) -> str:
    kinds = {"batch": batch, "contracting": summed}
    return "".join(
        f", {side}_{kind}_dims={braces(factor.axes.index(axis) for axis in axes)}"
        for kind, axes in kinds.items()
        if axes
    )


def _convolution(nest: Nest, factors: tuple[Spread, Spread], element: str) -> Spread:
    image, kernel = sorted(factors, key=lambda f: -max(map(len, f.axes), default=0))
    windows = [axis for axis in image.axes if len(axis) > 1]
    moves, offsets = zip(*(_terms(window, nest.out) for window in windows), strict=True)
    taps = [plain(loop) for loop, _ in offsets]
    shared = [axis for axis in image.axes if axis in kernel.axes]
    groups = [axis for axis in shared if axis in nest.out]
    channels = [axis for axis in shared if axis not in nest.out]
    features = [axis for axis in kernel.axes if axis not in (*taps, *shared)]
    batch = [axis for axis in image.axes if axis not in (*windows, *shared)]
    if not set(taps) <= set(kernel.axes) or not {*features, *batch} <= set(nest.out):
        raise UnsupportedDispatch("linalg.generic", "the product is not a convolution")
    lhs, lhs_order = arranged(
        nest.write, image, [batch, groups + channels, *([w] for w in windows)]
    )
    rhs, rhs_order = arranged(
        nest.write, kernel, [channels, groups + features, *([t] for t in taps)]
    )
    results = [batch, groups + features, *([plain(loop)] for loop, _ in moves)]
    order, axes = group_order(nest.out, results)
    labels = [_labels("bf", lhs_order), _labels("io", rhs_order), _labels("bf", order)]
    text = f", window={{{_window_text(nest, image, windows, lhs)}}}"
    text += f", dim_labels={labels[0]}_{labels[1]}->{labels[2]}"
    count = prod(nest.shape(groups))
    text += f", feature_group_count={count}" if count > 1 else ""
    extent = {axis: nest.extents[axis[0][0]] for axis in axes}
    result = (element, group_shape(results, order, extent))
    node = nest.write.add("convolution", result, [lhs, rhs], text)
    return Spread(nest.write.reshape(node, nest.shape(axes)), tuple(axes))


def _labels(letters: str, order: list[int]) -> str:
    return "".join(letters[group] if group < 2 else str(group - 2) for group in order)


def _terms(window: Axis, out: Sequence[Axis]) -> tuple[tuple[int, int], tuple[int, int]]:
    """Returns the term that moves a window, and the term within the window."""
    moves = [term for term in window if plain(term[0]) in out]
    offsets = [term for term in window if plain(term[0]) not in out]
    if len(moves) != 1 or len(offsets) != 1:
        raise UnsupportedDispatch("linalg.generic", "a window has several loops of one kind")
    return moves[0], offsets[0]


def _window_text(nest: Nest, image: Spread, windows: Sequence[Axis], node: Node) -> str:
    """Returns the attribute ``window`` of the dimensions that follow ``windows``."""
    extent = dict(zip(image.axes, image.node.shape, strict=True))
    parts: dict[str, list[str]] = {"size": [], "stride": [], "pad": [], "rhs_dilate": []}
    for axis in windows:
        size = 1
        stride = 1
        dilation = 1
        used = extent[axis]
        if len(axis) > 1:
            (move, stride), (offset, dilation) = _terms(axis, nest.out)
            size = nest.extents[offset]
            used = stride * (nest.extents[move] - 1) + dilation * (size - 1) + 1
        elif axis not in nest.out:
            size = extent[axis]
        parts["size"].append(str(size))
        parts["stride"].append(str(stride))
        parts["pad"].append(f"0_{used - extent[axis]}")
        parts["rhs_dilate"].append(str(dilation))
    # What an attribute may leave out.
    usual = {"size": "", "stride": "1", "pad": "0_0", "rhs_dilate": "1"}
    kept = {name: values for name, values in parts.items() if set(values) - {usual[name]}}
    return " ".join(f"{name}={'x'.join(values)}" for name, values in kept.items())


def windowed(nest: Nest, value: Spread, initial: Node, computation: str) -> Spread:
    """Reduces windows that move over a value, and the loops that the result lacks."""
    text = (
        f", window={{{_window_text(nest, value, value.axes, value.node)}}}, to_apply={computation}"
    )
    moved = [_terms(a, nest.out)[0][0] if len(a) > 1 else a[0][0] for a in value.axes]
    kept = [plain(loop) for loop in moved if plain(loop) in nest.out]
    shape = [nest.extents[loop] if plain(loop) in nest.out else 1 for loop in moved]
    operands = [value.node, initial]
    # rhs_dilate of a convolution is the dilation of a window here, too.
    node = nest.write.add("reduce-window", (value.node.element, shape), operands, text)
    return Spread(nest.write.reshape(node, nest.shape(kept)), tuple(kept))
