"""Finds the dispatches of a program, and the tiles that IREE gives them by default."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from hlorank_tune.iree.compiler import CONFIGURATIONS, FLAGS, SOURCES, lower_text
from hlorank_tune.iree.tiles import Dimension, Loop, TileSizes, TileSpace

_COPIES_AND_SCALARS = ("Default", "BufferOpsTileAndVectorize")
"""Pipelines that a tuning spec does not reach."""
_KEEPS_ONES = ("ConvTileAndDecomposeExpert",)
_MAX_BOUNDS = 6
"""Dimensions of an output, and reductions, that a tile configuration can describe."""
_LEVELS = {"distribution", "cache_parallel", "vector_common_parallel", "vector_reduction"}
_CONFIG = "lowering_config"


@dataclass(frozen=True)
class Binding:
    """A buffer that a dispatch reads or writes."""

    bytes: int
    element: str
    """Element type of its contents, such as ``f32``."""


@dataclass(frozen=True)
class Dispatch:
    """A kernel that IREE forms of a program. All texts are MLIR."""

    name: str
    """Name of its function, such as ``main_dispatch_3_matmul_64x512x64_f32``."""
    source: str
    """The executable after phase ``executable-sources``."""
    configured: str
    """The executable after phase ``executable-configurations``, with the default tile."""
    device: str
    """The global of the program that holds the target device."""
    bindings: tuple[Binding, ...]
    constants: tuple[tuple[int, str], ...]
    """Numbers that the first call passes, such as offsets in buffers, with their types."""
    calls: int
    """How many calls the program contains."""
    pipeline: str
    space: TileSpace | None
    """Its tiles; None if no tile can be set, for the reason in ``untunable``."""
    untunable: str = ""

    @property
    def key(self) -> str:
        """A digest of the work and of the default tile, which names do not change."""
        return sha256(re.sub(r"@\w+", "@", self.configured).encode()).hexdigest()[:16]


def find_dispatches(program: str, flags: Sequence[str] = FLAGS) -> list[Dispatch]:
    """Compiles a program up to its dispatches, and returns the distinct ones.

    Raises:
        CompileError: if IREE cannot compile the program.
    """
    source = lower_text(program, SOURCES, flags)
    configured = lower_text(source, CONFIGURATIONS, flags, begin=SOURCES)
    before = parse(source)
    after = parse(configured)
    globals_ = (o for o in before.body.operations if o.operation.name == "util.global")
    device = str(next(globals_, ""))
    calls: dict[str, list[Any]] = {}
    for operation in operations(before.operation):
        if operation.name == "stream.cmd.dispatch":
            name = re.match(r'\[@"?([^:"]+)', str(operation.attributes["entry_points"]))
            calls.setdefault(name[1], []).append(operation)
    dispatches = []
    for one, other in zip(_executables(before), _executables(after), strict=True):
        called = calls.get(str(one.attributes["sym_name"]).strip('"'))
        if called:  # by the program
            dispatches.append(_dispatch(one, other, device, called))
    return dispatches


def parse(text: str) -> Any:
    """Parses MLIR into an ``iree.compiler.ir.Module``."""
    from iree.compiler import ir

    return ir.Module.parse(text, ir.Context())


@contextmanager
def function_of(executable: str) -> Iterator[Any]:
    """Yields the function of an executable, which only lives as long as its module."""
    module = parse(f"module {{\n{executable}\n}}")
    yield _function(module.operation)


def operations(operation: Any) -> Iterator[Any]:
    """Yields an operation and all inside it, in order."""
    yield operation
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from operations(inner.operation)


def root_of(operation: Any) -> Any | None:
    """Returns the operation inside whose ``lowering_config`` distributes work; None without one."""
    for inner in operations(operation):
        if _CONFIG in inner.attributes and "distribution" in str(inner.attributes[_CONFIG]):
            return inner
    return None


def lowering_config(sizes: TileSizes) -> str:
    """Returns IREE's attribute of a tile."""
    levels = [
        ("distribution", sizes.distribution),
        ("vector_common_parallel", sizes.vector),
        ("vector_reduction", sizes.reduction),
    ]
    texts = [f"{name} = {list(numbers)}" for name, numbers in levels if any(numbers)]
    return f"#iree_cpu.lowering_config<{', '.join(texts)}>"


def with_tile(dispatch: Dispatch, sizes: TileSizes) -> str:
    """Returns the configured executable with a tile at its root, as a tuning spec sets it.

    A spec sets nothing at other operations: they follow the root.
    """
    from iree.compiler import ir

    module = parse(f"module {{\n{dispatch.device}\n{dispatch.configured}\n}}")
    root = root_of(module.operation)
    for operation in operations(module.operation):
        if _CONFIG in operation.attributes:
            del operation.attributes[_CONFIG]
    root.attributes[_CONFIG] = ir.Attribute.parse(lowering_config(sizes), module.context)
    return str(next(_executables(module)))


def _executables(module: Any) -> Iterator[Any]:
    for operation in module.body.operations:
        if operation.operation.name == "hal.executable":
            yield operation.operation


def _dispatch(source: Any, configured: Any, device: str, calls: list[Any]) -> Dispatch:
    function = _function(configured)
    space, reason = _space(function, _function(source))
    lengths = [_value(operand) for operand in _segment(calls[0], 5)]
    if None in lengths:
        space = None
        reason = "its buffers have dynamic sizes"
        lengths = []
    elements: dict[int, str] = {}
    for operation in operations(configured):
        if operation.name == "hal.interface.binding.subspan":
            number = int(str(operation.attributes["binding"]).split(":")[0])
            kind = str(operation.results[0].type).split(":")[-1]
            inner = re.search(r"(?:tensor|memref)<(?:\d+x)*([a-z]+\d+)", kind)
            elements.setdefault(number, inner[1] if inner else "f32")
    # What a program computes while it runs counts as 0; no loop depends on it.
    constants = [(_value(operand) or 0, str(operand.type)) for operand in _segment(calls[0], 1)]
    return Dispatch(
        str(function.attributes["sym_name"]).strip('"'),
        str(source),
        str(configured),
        device,
        tuple(Binding(size, elements.get(i, "f32")) for i, size in enumerate(lengths)),
        tuple(constants),
        len(calls),
        _pipeline(function),
        space,
        reason,
    )


def _segment(call: Any, number: int) -> list[Any]:
    """Returns operands of a call: 1 for its numbers, 5 for the lengths of its buffers."""
    sizes = list(call.attributes["operandSegmentSizes"])
    begin = sum(sizes[:number])
    return list(call.operands)[begin : begin + sizes[number]]


def _value(operand: Any) -> int | None:
    """Returns the number of a constant; None for other values."""
    owner = operand.owner
    if getattr(owner, "name", "") != "arith.constant":
        return None
    return int(str(owner.attributes["value"]).split(":")[0])


def _pipeline(function: Any) -> str:
    found = re.search(r"pipeline = (?:#iree_cpu.pipeline<)?(\w+)", str(function))
    return found[1] if found else "none"


def _function(executable: Any) -> Any:
    return next(o for o in operations(executable) if o.name == "func.func")


def _space(function: Any, source: Any) -> tuple[TileSpace | None, str]:
    root = root_of(function)
    if root is None:
        return None, "no operation has a tile"
    if (pipeline := _pipeline(function)) in _COPIES_AND_SCALARS:
        return None, f"pipeline {pipeline} is for copies and scalars"
    from iree.compiler.dialects import linalg

    maps = linalg.get_indexing_maps(root) if root.name.startswith("linalg.") else None
    if not maps:
        return None, f"root {root.name} has no loops"
    found = re.findall(r"(\w+) = \[([^\]]*)\]", str(root.attributes[_CONFIG]))
    levels = {
        name: tuple(int(n.strip(" []")) for n in text.split(",") if n.strip())
        for name, text in found
    }
    # On processors without AVX-512, IREE names a level for the cache, which cuts nothing if it
    # equals the distribution. A tile has no such level.
    distribution = levels["distribution"]
    is_cut_for_cache = levels.get("cache_parallel", distribution) != distribution
    if not set(levels) <= _LEVELS or "vector_common_parallel" not in levels or is_cut_for_cache:
        return None, f"tiling levels are {', '.join(levels)}"
    maps = [m.value for m in maps]
    extents: dict[int, int] = {}
    for operand, indices in zip(root.operands, maps, strict=True):
        shape = getattr(operand.type, "shape", [])
        for size, expression in zip(shape, indices.results, strict=True):
            if (loop := _loop_of(expression)) is not None:
                extents.setdefault(loop, size)
    if len(extents) != maps[0].n_dims or min(extents.values(), default=1) < 1:
        return None, "it has dynamic shapes"
    output = [_loop_of(expression) for expression in maps[-1].results]
    if None in output:
        return None, "its output is not indexed by loops"
    loops = tuple(Loop(extent, i not in output) for i, extent in sorted(extents.items()))
    if max(len(output), len(loops) - len(output)) > _MAX_BOUNDS:
        return None, f"it has more than {_MAX_BOUNDS} dimensions or reductions"
    none = (0,) * len(loops)
    sizes = TileSizes(
        levels["distribution"],
        levels["vector_common_parallel"],
        levels.get("vector_reduction", none),
    )
    result = _result_dimensions(function, root, output, source)
    # Operations that compute with elements.
    names = [o.name for o in operations(function) if o.name.startswith("linalg.")]
    work = sum(name not in ("linalg.fill", "linalg.yield") for name in names)
    return TileSpace(loops, result, sizes, pipeline in _KEEPS_ONES, work), ""


_STORES = ("iree_codegen.store_to_buffer", "iree_tensor_ext.dispatch.tensor.store")
_RESHAPES = ("tensor.expand_shape", "tensor.collapse_shape", "tensor.cast")

_Loops = Sequence[int | None]
"""The loop of the root that each dimension of an array follows; None if it follows none."""


def _result_dimensions(
    function: Any, root: Any, loops: _Loops, source: Any
) -> tuple[Dimension, ...]:
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
    known: dict[Any, _Loops] = {value: loops for value in root.results}
    own = _dimensions(root.results[0], loops)
    stores = [o for o in _block(source) if o.name in _STORES]
    for operation in _block(function):
        if operation.name in _STORES:
            shape = list(stores.pop(0).operands[0].type.shape) if stores else []
            stored = operation.operands[0]
            found = stored in known and _reshaped(_dimensions(stored, known[stored]), shape)
            # No loop of the root's output may be lost; loops of one step do not count.
            is_whole = found and {d.loop for d in own if d.extent > 1} <= {d.loop for d in found}
            if found:
                return found if is_whole else own
        elif operation != root:
            known.update(_results(operation, known))
    return own


def _block(function: Any) -> Iterator[Any]:
    return (operation.operation for operation in function.regions[0].blocks[0].operations)


def _dimensions(value: Any, loops: _Loops) -> tuple[Dimension, ...]:
    return tuple(Dimension(n, loop) for n, loop in zip(value.type.shape, loops, strict=True))


def _results(operation: Any, known: dict[Any, _Loops]) -> dict[Any, _Loops]:
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


def _indexed(operation: Any, maps: Sequence[Any], known: dict[Any, _Loops]) -> dict[Any, _Loops]:
    """Follows an operation whose operands are indexed by its own loops."""
    outer: dict[int, int | None] = {}
    results = len(operation.results)
    for operand, indices in zip(operation.operands, maps[: len(maps) - results], strict=False):
        for loop, expression in zip(known.get(operand, []), indices.results, strict=False):
            if loop is not None and (own := _loop_of(expression)) is not None:
                outer[own] = loop
    if not outer:
        return {}
    return {
        result: [outer.get(_loop_of(e)) for e in indices.results]
        for result, indices in zip(operation.results, maps[-results:], strict=True)
    }


def _loop_of(expression: Any) -> int | None:
    """Returns the loop that an index is; None for other indices."""
    from iree.compiler import ir

    is_loop = isinstance(expression, ir.AffineDimExpr)
    return expression.position if is_loop else None
