"""How a fused kernel walks through memory: which nodes change the innermost dimension.

XLA:CPU generates one loop nest for a fused kernel, over the dimensions of its root. LLVM vectorizes
the innermost loop only if nothing in it depends on the index: a concatenation or padding of the
minor dimension is a branch for each element, and a transpose reads every element from another row.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from hlorank_training.models.opcode_ids import OPCODE_IDS

MINOR = ("concatenate", "pad", "slice", "reshape", "transpose", "reduce", "broadcast", "reverse")
"""Opcodes that can change the minor dimension."""
_RESIZING = ("concatenate", "pad", "slice", "reshape", "dynamic-slice", "dynamic-update-slice")
_SHAPE, _DIMENSIONS = slice(21, 27), slice(31, 37)


@dataclass(frozen=True)
class Access:
    """Properties of nodes; each is [S,N]."""

    minor: Tensor
    """Size of the output's minor dimension, 1 for scalars."""
    operand_minor: Tensor
    """The largest minor dimension of the operands, 0 without operands."""
    changes: Tensor
    """1 if the node changes, moves, reduces or repeats the minor dimension."""
    scatters: Tensor
    """1 if the elements of a row of the output are in different rows of the operand."""
    restarts: Tensor
    """1 if every element of the output begins a row of the operand."""


def access(opcode: Tensor, features: Tensor, edges: Tensor) -> Access:
    """Maps opcodes i64 [S,N], raw features f32 [S,N,140] and edges f32 [S,N,N] from consumers to
    producers to properties of the nodes."""
    shape, listed = features[..., _SHAPE], features[..., _DIMENSIONS]
    rank = (shape > 0).float().sum(-1)
    last = (torch.arange(shape.shape[-1]) == rank.unsqueeze(-1) - 1).float()
    minor = (shape * last).sum(-1).clamp(min=1)
    operand_minor = (edges * minor.unsqueeze(1)).amax(-1)
    resized = _any(_RESIZING, opcode) * (minor != operand_minor).float()
    moved = _any(("transpose",), opcode) * ((listed * last).sum(-1) != rank - 1).float()
    # Reduced dimensions are ascending, so that only the first can be 0.
    reduced = 1 + (listed[..., 1:] > 0).float().sum(-1)
    largest = listed.amax(-1)
    reduces = _any(("reduce",), opcode) * (largest == rank + reduced - 1).float()
    repeats = _any(("broadcast",), opcode) * (largest != rank - 1).float()
    turned = _any(("reverse",), opcode) * (largest == rank - 1).float()
    return Access(
        minor,
        operand_minor,
        (resized + moved + reduces + repeats + turned).clamp(max=1),
        moved,
        (reduces + _any(("reshape",), opcode) * resized).clamp(max=1),
    )


def _any(names: tuple[str, ...], opcode: Tensor) -> Tensor:
    return sum((opcode == OPCODE_IDS[name]).float() for name in names)
