"""Whether a compiled program has the kernels that were wanted."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hlorank_tune.measure.fusion.graph import FusionGraph
from hlorank_tune.measure.fusion.kernels import Kernel
from hlorank_tune.measure.fusion.opcodes import FREE

_IGNORED = FREE | {"bitcast", "broadcast", "copy", "reshape", "slice", "transpose"}
"""Opcodes that ``write`` adds to keep layouts, or that the compiler adds or folds."""


@dataclass(frozen=True)
class KernelSet:
    """The kernels of a program, as far as they are compared."""

    fusions: tuple[tuple[str, int], ...]
    """The opcodes of a loop fusion's members, and how many fusions have these; sorted."""
    others: int
    """Number of kernels that are no fusion; a library may have replaced them."""


def wanted_kernels(graph: FusionGraph, kernels: Sequence[Kernel]) -> KernelSet:
    """Returns the kernels that a configuration asks for."""
    fusions = [
        _signature(map(graph.opcode, kernel.members))
        for kernel in kernels
        if graph.fusible(kernel.root)
    ]
    return _kernel_set(fusions, len(kernels) - len(fusions))


def compiled_kernels(optimized: Any) -> KernelSet:
    """Returns the kernels of an HloModuleProto after all passes."""
    computations = {c.id: c for c in optimized.computations}
    fusions = []
    others = 0
    for instruction in computations[optimized.entry_computation_id].instructions:
        if instruction.opcode == "fusion" and instruction.fusion_kind == "kLoop":
            body = computations[instruction.called_computation_ids[0]]
            fusions.append(_signature(i.opcode for i in body.instructions))
        elif instruction.opcode not in FREE | {"bitcast", "copy"}:
            others += 1
    return _kernel_set(fusions, others)


def difference(wanted: KernelSet, compiled: KernelSet) -> str:
    """Returns how the compiled kernels differ; empty if they are those that were wanted."""
    missing = Counter(dict(wanted.fusions)) - Counter(dict(compiled.fusions))
    added = Counter(dict(compiled.fusions)) - Counter(dict(wanted.fusions))
    # The compiler wraps a kernel that is no fusion, such as a gather, into one of its own.
    wrapped = sum(count for signature, count in added.items() if "," not in signature)
    if not missing and wrapped == added.total() == wanted.others - compiled.others:
        return ""
    return (
        f"missing fusions {dict(missing)}, added fusions {dict(added)}, "
        f"{compiled.others} other kernels instead of {wanted.others}"
    )


def _signature(opcodes: Iterable[str]) -> str:
    return ",".join(sorted(opcode for opcode in opcodes if opcode not in _IGNORED))


def _kernel_set(fusions: Sequence[str], others: int) -> KernelSet:
    return KernelSet(tuple(sorted(Counter(fusions).items())), others)
