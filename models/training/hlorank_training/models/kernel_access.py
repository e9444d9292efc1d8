"""How a fused kernel walks through memory.

XLA:CPU generates one loop nest for a fused kernel, over the dimensions of its root, and one inside
for each reduction. A concatenation or padding of the minor dimension is a branch for each element,
for which LLVM often does not vectorize the innermost loop. A node whose minor dimension is not
walked by the innermost loop is read line by line of memory.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from hlorank_training.models.opcode_ids import is_opcode

MINOR = ("concatenate", "pad", "slice", "reshape", "transpose", "reduce", "broadcast", "reverse")
"""Opcodes that can change the minor dimension."""
LOOPS = 7
"""The dimensions of the root, and the innermost reduction."""
DIMENSIONS = 6
_RESIZING = ("concatenate", "pad", "slice", "reshape", "dynamic-slice", "dynamic-update-slice")
_SHAPE = slice(21, 27)
_DIMENSIONS = slice(31, 37)


@dataclass(frozen=True)
class Access:
    """Properties of nodes."""

    sizes: Tensor
    """[S,N,6]: the output's dimensions, 1 for those that do not exist"""
    last: Tensor
    """[S,N,6]: 1 at the minor dimension"""
    minor: Tensor
    """[S,N]: size of the output's minor dimension, 1 for scalars"""
    operand_minor: Tensor
    """[S,N]: the largest minor dimension of the operands, 0 without operands"""
    changes: Tensor
    """[S,N]: 1 if the node changes, moves, reduces or repeats the minor dimension"""
    moves: Tensor
    """[S,N,6,6]: 1 where walking a dimension of the output walks a dimension of the operand"""
    reduces: Tensor
    """[S,N,6]: 1 at the last dimension of the operand that the node reduces"""


def access(opcode: Tensor, features: Tensor, edges: Tensor) -> Access:
    """Maps opcodes i64 [S,N], raw features f32 [S,N,140] and edges f32 [S,N,N] from consumers to
    producers to properties of the nodes."""
    shape = features[..., _SHAPE]
    listed = features[..., _DIMENSIONS]
    places = torch.arange(DIMENSIONS)
    rank = (shape > 0).float().sum(-1, keepdim=True)
    last = (places == rank - 1).float()
    minor = (shape * last).sum(-1).clamp(min=1)
    operand_minor = (edges * minor.unsqueeze(1)).amax(-1)
    operand_rank = (edges * rank.mT).amax(-1, keepdim=True)
    # Listed dimensions are as many as a shape that is the result's or the operand's has fewer.
    reduced = is_opcode("reduce", opcode).unsqueeze(-1) * (places < operand_rank - rank)
    is_reduced = (_one_hot(listed) * reduced.unsqueeze(-1)).amax(-2)
    largest = listed.amax(-1)
    resized = sum(is_opcode(name, opcode) for name in _RESIZING) * (minor != operand_minor).float()
    is_transpose = is_opcode("transpose", opcode)
    moved = is_transpose * ((listed * last).sum(-1) != rank.squeeze(-1) - 1).float()
    sums = is_reduced.sum(-1) * (largest == operand_rank.squeeze(-1) - 1).float()
    repeats = is_opcode("broadcast", opcode) * (largest != rank.squeeze(-1) - 1).float()
    turned = is_opcode("reverse", opcode) * (largest == rank.squeeze(-1) - 1).float()
    changes = (resized + moved + sums + repeats + turned).clamp(max=1)
    kinds = [is_opcode(name, opcode)[..., None, None] for name in _KINDS]
    moves = [
        _one_hot(listed) * (places < rank).unsqueeze(-1),
        _one_hot(listed).mT * (places < operand_rank).unsqueeze(-2),
        _kept(is_reduced, operand_rank),
        _reshaped(shape.clamp(min=1), edges),
    ]
    others = torch.eye(DIMENSIONS) * (1 - sum(kinds))
    mapped = others + sum(kind * one for kind, one in zip(kinds, moves, strict=True))
    last_reduced = is_reduced * (places == largest.unsqueeze(-1))
    return Access(
        shape.clamp(min=1), last, minor, operand_minor, changes, mapped, last_reduced.float()
    )


_KINDS = ("transpose", "broadcast", "reduce", "reshape")
"""Opcodes whose dimensions are not those of the operand."""


def _one_hot(listed: Tensor) -> Tensor:
    """Maps lists of dimensions [S,N,6] to [S,N,6,6]."""
    return (listed.unsqueeze(-1) == torch.arange(DIMENSIONS)).float()


def _kept(is_reduced: Tensor, operand_rank: Tensor) -> Tensor:
    """Maps the dimensions of a reduction's output to those that it keeps: [S,N,6,6]."""
    places = torch.arange(DIMENSIONS)
    kept = (1 - is_reduced) * (places < operand_rank)
    order = kept.cumsum(-1) - 1
    return (order.unsqueeze(-2) == places.unsqueeze(-1)).float() * kept.unsqueeze(-2)


def _reshaped(sizes: Tensor, edges: Tensor) -> Tensor:
    """Maps dimensions to the operand's whose span of memory their stride is in: [S,N,6,6]."""
    strides = _inner(sizes)
    begin = edges @ strides
    end = edges @ (strides * sizes)
    stride = strides.unsqueeze(-1)
    inside = (stride >= begin.unsqueeze(-2)) * (stride < end.unsqueeze(-2))
    return inside.float() * (sizes > 1).unsqueeze(-1)


def _inner(sizes: Tensor) -> Tensor:
    """Returns the product of the dimensions behind each: [S,N,6]."""
    behind = [torch.ones_like(sizes[..., 0])]
    for size in sizes.unbind(-1)[:0:-1]:
        behind.append(behind[-1] * size)
    return torch.stack(behind[::-1], -1)


@dataclass(frozen=True)
class Walk:
    """How nodes are read; each is [S,N], and a share of the node's evaluations."""

    along: Tensor
    """Whether the innermost loop over the root walks the node's minor dimension."""
    across: Tensor
    """Whether it walks another dimension of the node."""
    reduced_along: Tensor
    """Whether the innermost reduction walks the node's minor dimension."""
    reduced_across: Tensor
    distance: Tensor
    """Logarithm of the iterations until the next element of the minor dimension is read."""


def walk(found: Access, root: Tensor, walked: Tensor, evaluations: Tensor) -> Walk:
    """Maps the evaluations by loop and dimension [S,N,7,6] to shares."""
    share = walked / evaluations.clamp(min=1)[..., None, None]
    sizes = ((found.sizes - 1) * root.unsqueeze(-1)).sum(1) + 1
    behind = _inner(sizes)
    # Loops of one iteration are none.
    innermost = ((sizes > 1) * (behind == 1)).float()
    by_loop = torch.cat([innermost, innermost[:, :1] * 0], -1)
    inner = (share * by_loop[:, None, :, None]).sum(-2)
    reduction = share[..., LOOPS - 1, :]
    along = (inner * found.last).sum(-1)
    reduced_along = (reduction * found.last).sum(-1)
    minor = (share[..., :DIMENSIONS, :] * found.last.unsqueeze(-2)).sum(-1)
    return Walk(
        along,
        (inner.sum(-1) - along).clamp(min=0),
        reduced_along,
        (reduction.sum(-1) - reduced_along).clamp(min=0),
        (minor * torch.log(_by_fours(behind))[:, :DIMENSIONS].unsqueeze(1)).sum(-1),
    )


def _by_fours(x: Tensor) -> Tensor:
    """Adds ones to [S,6] so that it has [S,8]: ONNX Runtime rounds the logarithms of the last
    numbers of an array differently if they are not a multiple of four."""
    return F.pad(x, (0, 2), value=1.0)


def start(found: Access, begin: Tensor) -> Tensor:
    """Returns the evaluations of the root by loop and dimension: [S,N,7,6]."""
    loops = F.pad(torch.eye(DIMENSIONS), (0, 0, 0, 1))
    return begin[..., None, None] * loops
