"""How much a fused kernel computes: every node's evaluations, recomputation included.

XLA:CPU generates the code of a fused kernel per index. Elementwise users of one index share the
value of their operand; any other user computes it at an index of its own, as often as it is
computed itself, and a reduction computes it for each element that it reads.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from hlorank_tune.measure.fusion.graph import ELEMENTWISE, FREE
from torch import Tensor, nn

from hlorank_training.models.kernel_access import (
    DIMENSIONS,
    LOOPS,
    MINOR,
    Access,
    Walk,
    access,
    start,
    walk,
)
from hlorank_training.models.opcode_ids import OPCODE_IDS, is_opcode
from hlorank_training.models.segment_model import BYTES_OF_TYPES, ELEMENTS, OPCODES, TYPES

GROUPS = (
    ("divide", "remainder"),
    ("rsqrt", "sqrt", "cbrt"),
    ("exponential", "exponential-minus-one", "logistic", "tanh"),
    ("log", "log-plus-one", "power", "atan2", "sine", "cosine", "tan"),
    ("broadcast", "iota"),
    ("reshape", "bitcast"),
    ("transpose",),
    ("concatenate",),
    ("pad",),
    ("dynamic-slice", "dynamic-update-slice"),
    ("reverse", "slice"),
    ("gather", "scatter", "select-and-scatter", "sort"),
    ("reduce",),
    ("reduce-window",),
    ("dot",),
    ("convolution",),
    ("compare", "select", "clamp", "maximum", "minimum", "sign", "and", "or", "not"),
    ("convert",),
)
"""Opcodes whose work is added up together; all others that compute are one more group."""
AMOUNTS = 2 * (2 * (len(GROUPS) + 1) + len(MINOR) + 7)
"""Work and nodes by group, work that changes the minor dimension by opcode, bytes of parameters and
of the result, multiplications, evaluations and rows of parameters, bytes that are read, and the
minor dimension of the result; then all of them per element of the result."""
_LINE = 64.0
"""Bytes that memory moves at once."""
_HOPS = 8
"""Changes of the index between the root and a node that are followed."""
_HALVINGS = 2
"""How often a kernel is halved before paths are followed."""
_DOUBLINGS = 7
"""Within such a part, paths of up to 2 to the power of this many nodes are followed: all of them,
since the largest kernels have 512 nodes."""
_WINDOW = slice(44, 45)


@dataclass(frozen=True)
class Work:
    """What the nodes of kernels do; each is [S,N] and 0 at padding, unless it says otherwise."""

    elements: Tensor
    evaluations: Tensor
    """How often a node is computed, or a parameter is read."""
    work: Tensor
    """Elements that a node computes or reduces; 0 for what takes no time."""
    bytes: Tensor
    """Bytes of the parameters and of the root, which are read and written, in whole lines."""
    rows: Tensor
    """Rows of consecutive elements in which evaluations come."""
    access: Access
    walk: Walk
    products: Tensor
    """Multiplications of dots and convolutions."""
    root: Tensor
    parameter: Tensor
    amounts: Tensor
    """[S, AMOUNTS]: sums over the nodes."""


class KernelWork(nn.Module):
    """Maps kernels to their work; has no parameters."""

    def __init__(self):
        super().__init__()
        tables = {
            "elementwise": _flags(ELEMENTWISE),
            "groups": _groups(),
            "free": _flags(FREE),
            "bytes": torch.tensor(BYTES_OF_TYPES).float(),
        }
        for name, table in tables.items():
            self.register_buffer(name, table, persistent=False)

    def forward(self, opcode: Tensor, features: Tensor, edges: Tensor, mask: Tensor) -> Work:
        """Maps opcodes i64 [S,N], raw features f32 [S,N,140], edges f32 [S,N,N] from consumers to
        producers and mask f32 [S,N]."""
        elements = features[..., ELEMENTS].clamp(min=1) * mask
        window = features[..., _WINDOW].clamp(min=1)
        # Roots of called computations have their caller as a user.
        root = features[..., 0] * mask * (edges.sum(1) == 0).float()
        parameter = is_opcode("parameter", opcode) * mask
        is_free = self.free[opcode]
        found = access(opcode, features, edges)
        # How often a producer is computed per evaluation of a consumer with another index: [S,N,N].
        hops = edges * (1 - self.elementwise[opcode]).unsqueeze(-1)
        hops = hops * _reads(opcode, elements, window)
        evaluations, walked = self._evaluations(opcode, edges, hops, root * elements, found)
        evaluations = evaluations * mask
        walks = walk(found, root, walked, evaluations)
        ways = torch.maximum(walks.along, walks.reduced_along) / found.minor
        ways = ways + torch.maximum(walks.across, walks.reduced_across)
        rows = evaluations * ways.clamp(max=1)
        largest = (edges * elements.unsqueeze(1)).amax(-1)
        reduced = (largest / elements.clamp(min=1) - 1).clamp(min=0) * is_opcode("reduce", opcode)
        windowed = (window.squeeze(-1) - 1) * is_opcode("reduce-window", opcode)
        work = evaluations * (1 + reduced + windowed) * (1 - is_free)
        products = _products(opcode, elements, edges) * mask
        element = features[..., TYPES] @ self.bytes
        size = elements * element
        read = torch.minimum(size, evaluations * element + rows * _LINE) * parameter
        sums = [size * parameter, size * root, products, evaluations * parameter]
        sums += [rows * parameter, read, found.minor * root]
        sums += [work * found.changes * is_opcode(name, opcode) for name in MINOR]
        groups = self.groups[opcode]
        by_group = [(work.unsqueeze(-1) * groups).sum(1), (mask.unsqueeze(-1) * groups).sum(1)]
        amounts = torch.cat([*by_group, torch.stack([one.sum(-1) for one in sums], -1)], -1)
        output = (elements * root).sum(-1, keepdim=True).clamp(min=1)
        amounts = torch.cat([amounts, amounts / output], -1)
        moved = read + size * root
        counts = elements, evaluations, work, moved, rows
        return Work(*counts, found, walks, products, root, parameter, amounts)

    def _evaluations(
        self, opcode: Tensor, edges: Tensor, hops: Tensor, begin: Tensor, found: Access
    ) -> tuple[Tensor, Tensor]:
        """Spreads the evaluations of the root over its producers: [S,N], and by loop and walked
        dimension [S,N,7,6].

        Producers that elementwise users alone separate from a node are computed as often as it.
        """
        direct = edges * self.elementwise[opcode].unsqueeze(-1) + torch.eye(edges.shape[-1])
        same_index = _reached(direct, _HALVINGS)
        of_root = torch.cat([begin.unsqueeze(-1), start(found, begin).flatten(-2)], -1)
        known = same_index.mT @ of_root
        is_reduce = found.reduces.amax(-1)[..., None, None]
        inner_loop = torch.zeros(LOOPS, 1)
        inner_loop[-1] = 1
        for _ in range(_HOPS):
            count = known[..., :1]
            walked = known[..., 1:].unflatten(-1, (LOOPS, DIMENSIONS))
            moved = walked @ found.moves * (1 - is_reduce * inner_loop)
            moved = moved + inner_loop * (count * found.reduces).unsqueeze(-2)
            new = hops.mT @ torch.cat([count, moved.flatten(-2)], -1)
            known = same_index.mT @ (of_root + new)
        return known[..., 0], known[..., 1:].unflatten(-1, (LOOPS, DIMENSIONS))


def _reached(direct: Tensor, halvings: int) -> Tensor:
    """Maps edges from consumers to producers [S,N,N], with one from each node to itself, to 1 where
    a path leads from the row to the column, and 0 elsewhere.

    Squaring doubles the length of the paths, and a diamond counts once. Producers stand before
    their consumers, so that no path leads from the first half of the nodes to the second. Halving
    thus saves most of the work: N is a multiple of four, as every padded size.
    """
    if halvings == 0:
        for _ in range(_DOUBLINGS):
            direct = (direct @ direct).clamp(max=1)
        return direct
    # Slices, since the exporter makes sequences of chunks.
    segments = direct.shape[0]
    half = direct.shape[1] // 2
    first = direct[:, :half, :half]
    none = direct[:, :half, half:]
    across = direct[:, half:, :half]
    second = direct[:, half:, half:]
    halves = _reached(torch.cat([first, second]), halvings - 1)
    first = halves[:segments]
    second = halves[segments:]
    across = (second @ across @ first).clamp(max=1)
    return torch.cat([torch.cat([first, none], 2), torch.cat([across, second], 2)], 1)


def _reads(opcode: Tensor, elements: Tensor, window: Tensor) -> Tensor:
    """Returns how many elements of a producer one element of a consumer reads: [S,N,N]."""
    ratio = elements.unsqueeze(1) / elements.unsqueeze(2).clamp(min=1)
    reduces = is_opcode("reduce", opcode).unsqueeze(-1)
    slides = is_opcode("reduce-window", opcode).unsqueeze(-1)
    selects = (is_opcode("concatenate", opcode) + is_opcode("pad", opcode)).unsqueeze(-1)
    more = ratio.clamp(min=1) - 1
    less = ratio.clamp(max=1) - 1
    return 1 + reduces * more + slides * (window - 1) + selects * less


def _products(opcode: Tensor, elements: Tensor, edges: Tensor) -> Tensor:
    """Returns m n k for [m, k] x [k, n], the root of the product of the three sizes: [S,N]."""
    contracts = is_opcode("dot", opcode) + is_opcode("convolution", opcode)
    logarithm = torch.log(elements.clamp(min=1))
    both = (edges @ logarithm.unsqueeze(-1)).squeeze(-1)
    # Of nodes with many operands, the product might overflow.
    return contracts * torch.exp(contracts * (logarithm + both) / 2)


def _flags(names: Iterable[str]) -> Tensor:
    flags = torch.zeros(OPCODES)
    flags[[OPCODE_IDS[name] for name in names if name in OPCODE_IDS]] = 1
    return flags


def _groups() -> Tensor:
    """Returns the group of every opcode that computes, one-hot: [opcodes, groups + 1]."""
    named = torch.stack([_flags(names) for names in GROUPS], -1)
    others = (1 - named.sum(-1) - _flags(FREE)).clamp(min=0)
    return torch.cat([named, others.unsqueeze(-1)], -1)
