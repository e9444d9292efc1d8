"""Sums of products as dots and convolutions, and reductions of windows."""

from collections.abc import Sequence
from dataclasses import dataclass

from hlorank_tune.iree.hlo_axes import Axis, Spread, arranged, group_order, group_shape, plain
from hlorank_tune.iree.hlo_text import Node, UnsupportedDispatch, Writer, braces


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
    count = _size(nest.shape(groups))
    text += f", feature_group_count={count}" if count > 1 else ""
    extent = {axis: nest.extents[axis[0][0]] for axis in axes}
    result = (element, group_shape(results, order, extent))
    node = nest.write.add("convolution", result, [lhs, rhs], text)
    return Spread(nest.write.reshape(node, nest.shape(axes)), tuple(axes))


def _labels(letters: str, order: list[int]) -> str:
    return "".join(letters[group] if group < 2 else str(group - 2) for group in order)


def _size(shape: Sequence[int]) -> int:
    size = 1
    for extent in shape:
        size *= extent
    return size


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
    kept = {name: values for name, values in parts.items() if set(values) - _usual(name)}
    return " ".join(f"{name}={'x'.join(values)}" for name, values in kept.items())


def _usual(name: str) -> set[str]:
    """Returns the values that the attribute leaves out."""
    return {"pad": {"0_0"}, "size": set()}.get(name, {"1"})


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
