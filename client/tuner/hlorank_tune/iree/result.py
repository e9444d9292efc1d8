"""The result of a dispatch: which loop of the root each of its dimensions follows."""

from collections.abc import Iterator, Sequence
from typing import Any

from hlorank_tune.iree.tiles import Dimension

_STORES = ("iree_codegen.store_to_buffer", "iree_tensor_ext.dispatch.tensor.store")
_RESHAPES = ("tensor.expand_shape", "tensor.collapse_shape", "tensor.cast")

Loops = Sequence[int | None]
"""The loop of the root that each dimension of an array follows; None if it follows none."""


def result_dimensions(function: Any, root: Any, loops: Loops, source: Any) -> tuple[Dimension, ...]:
    """Follows the root's output through the operations after it to what the dispatch stores.

    Args:
        function: the ``func.func`` of a dispatch in phase ``executable-configurations``.
        root: its root operation.
        loops: the loop of each dimension of the root's output.
        source: the same function in phase ``executable-sources``, which has the shape of the
            result before IREE adds dimensions of size 1.

    Returns:
        The dimensions of the result, most major first. They are the dimensions of the root's own
        output if a reshape between them hides which is which.
    """
    known: dict[Any, Loops] = {value: loops for value in root.results}
    own = _dimensions(root.results[0], loops)
    stores = [o for o in _block(source) if o.name in _STORES]
    for operation in _block(function):
        if operation.name in _STORES:
            shape = list(stores.pop(0).operands[0].type.shape) if stores else []
            stored = operation.operands[0]
            found = stored in known and _reshaped(_dimensions(stored, known[stored]), shape)
            if found:
                return found if _follows(found, own) else own
        elif operation != root:
            known.update(_results(operation, known))
    return own


def _block(function: Any) -> Iterator[Any]:
    return (operation.operation for operation in function.regions[0].blocks[0].operations)


def _follows(found: Sequence[Dimension], own: Sequence[Dimension]) -> bool:
    """Returns whether no loop of the root's output is lost; loops of one step do not count."""
    return {d.loop for d in own if d.extent > 1} <= {d.loop for d in found}


def _dimensions(value: Any, loops: Loops) -> tuple[Dimension, ...]:
    return tuple(Dimension(n, loop) for n, loop in zip(value.type.shape, loops, strict=True))


def _results(operation: Any, known: dict[Any, Loops]) -> dict[Any, Loops]:
    """Returns the loops that the results of an operation follow, as far as they are known."""
    if operation.name in _RESHAPES and operation.operands[0] in known:
        before = _dimensions(operation.operands[0], known[operation.operands[0]])
        after = _reshaped(before, operation.results[0].type.shape)
        return {operation.results[0]: [d.loop for d in after]} if after else {}
    if not operation.name.startswith("linalg."):
        return {}
    from iree.compiler.dialects import linalg

    maps = linalg.get_indexing_maps(operation)
    return _indexed(operation, [m.value for m in maps], known) if maps else {}


def _reshaped(dimensions: Sequence[Dimension], shape: Sequence[int]) -> tuple[Dimension, ...]:
    """Adds or removes dimensions of size 1; returns nothing for another reshape."""
    kept = [d for d in dimensions if d.extent != 1]
    if [d.extent for d in kept] != [n for n in shape if n != 1]:
        return ()
    return tuple(kept.pop(0) if n != 1 else Dimension(1, None) for n in shape)


def _indexed(operation: Any, maps: Sequence[Any], known: dict[Any, Loops]) -> dict[Any, Loops]:
    """Follows an operation whose operands are indexed by its own loops."""
    outer: dict[int, int | None] = {}
    results = len(operation.results)
    for operand, indices in zip(operation.operands, maps[: len(maps) - results], strict=False):
        for loop, expression in zip(known.get(operand, []), indices.results, strict=False):
            if loop is not None and (own := loop_of(expression)) is not None:
                outer[own] = loop
    if not outer:
        return {}
    return {
        result: [outer.get(loop_of(e)) for e in indices.results]
        for result, indices in zip(operation.results, maps[-results:], strict=True)
    }


def loop_of(expression: Any) -> int | None:
    """Returns the loop that an index is; None for other indices."""
    from iree.compiler import ir

    is_loop = isinstance(expression, ir.AffineDimExpr)
    return expression.position if is_loop else None
