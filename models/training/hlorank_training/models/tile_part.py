"""The tile configuration's part of a model."""

from math import log
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hlorank_training.models.graph_layers import Standardise, rows_of
from hlorank_training.models.segment_model import TILE_FEATURES, SegmentBatch

RANK = 6
CUTS = RANK + 2
"""Numbers that cut a dimension: the bounds of the output, and the length and the presence of a
reduction."""
SAME = 1e-3
"""Difference of logarithms of lengths that counts as none."""
_PARAMETER = 63
"""Opcode of a kernel's inputs."""
_HALO = 4
"""Maximum difference of an input's dimension to the output's in a stencil or a convolution."""
_NONE = -1e9
"""Marks a dimension that equals no other."""


class Shapes(NamedTuple):
    """The tensors of S kernels: minor-most dimensions first."""

    lengths: Tensor
    """[S,8,6N]: maps the ``CUTS`` of a tile to the logarithms of the lengths of all dimensions
    in one tile"""
    uncut: Tensor
    """[S,N,6]: those of a tile of no size without any reduction"""
    whole: Tensor
    """[S,N,6]: logarithms of the dimensions"""
    total: Tensor
    """[S,N]: logarithms of the numbers of elements"""
    largest: Tensor
    """[S,1]: that of the largest tensor"""
    at_output: Tensor
    """[S,N]: 1 at the output"""
    at_inputs: Tensor
    """[S,N]: 1 at the kernel's inputs"""
    no_inputs: Tensor
    """[S,N]: 0 at the inputs, and very negative elsewhere"""
    is_node: Tensor
    """[S,1,N]: 1 at real nodes"""

    @classmethod
    def of(cls, batch: SegmentBatch) -> "Shapes":
        """Computes the properties of kernels, once for all tiles of a kernel."""
        places = torch.arange(RANK)
        sizes = batch.dimensions() * batch.mask.unsqueeze(-1)
        at_output = batch.output_node()
        at_inputs = (batch.opcode == _PARAMETER).to(sizes.dtype) * batch.mask
        output = at_output.unsqueeze(1) @ sizes
        rank, output_rank = ((x > 0).to(sizes.dtype).sum(-1, keepdim=True) for x in (sizes, output))
        matches, reduced = _matches(sizes, output, rank == output_rank)
        whole = log_of(sizes)
        total = whole.sum(-1)
        # A dimension that follows an output dimension is as much shorter as the tile is; one that
        # is reduced has the tile's length along the reduction, or is whole if that is not tiled.
        # Logarithms of the output are chosen among those of the nodes. ONNX Runtime would round the
        # last of six, which fill no register, as the number of kernels decides.
        output_whole = at_output.unsqueeze(1) @ whole
        fixed = whole - (matches * output_whole.unsqueeze(-2)).sum(-1)
        cuts = torch.stack([reduced, -reduced * whole, fixed, whole], -1)
        # The place of each dimension, counted from the minor-most: [S,N,6,6].
        place = (places == (rank - 1 - places).unsqueeze(-1)).to(sizes.dtype)
        ordered = place @ torch.cat([matches, cuts], -1)
        follows, uncut, whole = ordered.split([CUTS, 1, 1], -1)
        return cls(
            follows.flatten(1, 2).mT,
            uncut.squeeze(-1),
            whole.squeeze(-1),
            total,
            total.amax(-1, keepdim=True),
            at_output,
            at_inputs,
            (1 - at_inputs) * _NONE,
            batch.mask.unsqueeze(1),
        )


def _matches(sizes: Tensor, output: Tensor, same_rank: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the output dimension that each dimension follows [S,N,6,6], or that it follows
    none [S,N,6].

    ``sizes`` is [S,N,6] and ``output`` [S,1,6]; a dimension in the same place has priority.
    """
    divided = torch.where(output > 1, output, _NONE)
    equal = (sizes.unsqueeze(-1) == divided.unsqueeze(-2)).to(sizes.dtype)
    in_place = (sizes == divided).to(sizes.dtype)
    count = equal.sum(-1)
    elsewhere = torch.relu(equal - in_place.unsqueeze(-1)) / count.clamp(min=1).unsqueeze(-1)
    some = count.clamp(max=1)
    near = (_near(sizes, output) & same_rank).to(sizes.dtype) * (1 - some)
    matches = elsewhere + (in_place + near).unsqueeze(-1) * torch.eye(RANK)
    return matches, (sizes > 1).to(sizes.dtype) - some - near


def _near(sizes: Tensor, output: Tensor) -> Tensor:
    """Finds dimensions a little longer than the output's in the same place, or twice as long."""
    long = torch.where(output > 2 * _HALO, output, _NONE)
    longer = sizes - long
    halo = (longer > 0) & (longer <= _HALO)
    return halo | (torch.abs(longer - long) <= 1)


def log_of(x: Tensor) -> Tensor:
    """Returns the logarithms of numbers, and 0 for those below 1."""
    return torch.log(x.clamp(min=1))


LOOP = 8 + 3 * 5
PIECES = 8
"""Numbers of features of the loop over tiles, and of every node's piece of a tile."""
STEPS = 6
READ = 7
"""Columns of the loop: logarithms of its steps, and of the elements that a step reads."""
_STEPS = 5
"""Column of the steps in ``cuts``, which has one column less."""
AMOUNTS = 2
STEP = 6.0
SCALE = 4.0
LARGEST = 12.0
"""Logarithms: cost of a step in elements, and bounds; ``SCALE`` brings most amounts near 1."""
_REDUCTION_SUM = 6
_REDUCTION_PRODUCT = 7
_OUTPUT = 8
_OUTPUT_PRODUCT = 15
"""Columns of a tile; the output has six, the major dimension first."""
_REDUCTION_AND_OUTPUT = 16
"""Columns before those of inputs, which this part does not use."""
VECTOR = 16.0
"""Elements of one vector instruction."""


class TilePart(nn.Module):
    """The configuration's part of the first layer, and the amounts of every node.

    The bounds alone do not generalize to unseen kernels, so every node also has features of the
    piece of its tensor that one tile accesses. A dimension is cut like the output dimension of the
    same size; a dimension that the output lacks is cut like the reduction.

    A row has few numbers here, so the number of operations counts: sums and choices of columns are
    products with constant matrices. Bounds are whole numbers from 1, and 0 where there is none.
    """

    Tensors = Shapes

    def __init__(self, hidden: int):
        super().__init__()
        self.standardise = Standardise(TILE_FEATURES)
        self.bounds = nn.Linear(TILE_FEATURES, hidden)
        self.loop = nn.Sequential(nn.Linear(LOOP, hidden), nn.ReLU(), nn.Linear(hidden, hidden))
        self.pieces = nn.Linear(PIECES, hidden)
        for name, constant in _constants().items():
            self.register_buffer(name, constant, persistent=False)

    def fit(self, tiles: Tensor) -> None:
        """Computes the statistics of the standardization from raw tiles [n,24]."""
        self.standardise.fit(tiles)

    def of_segments(self, batch: SegmentBatch) -> tuple[Shapes, Tensor]:
        """Returns what depends on the segments alone, and what is added to their nodes [S,N,H]."""
        shapes = Shapes.of(batch)
        _, of_whole = self._piece_weights()
        return shapes, _whole(shapes) @ of_whole.T + self.pieces.bias

    def forward(
        self, shapes: Shapes, nodes: Tensor, config: Tensor, loops: Tensor | float
    ) -> tuple[Tensor, Tensor]:
        """Joins ``nodes`` [B,N,H], the tiles [B,24] and ``loops`` [B,H] to [B*N,H].

        Adds amounts and 1, [B,3,N], which are 0 at padding.
        """
        loop, pieces, piece = self.cuts(shapes, config)
        of_piece, _ = self._piece_weights()
        given = ((self._per_row(config, loop) + loops).unsqueeze(1) + nodes).flatten(0, 1)
        joined = torch.addmm(given, pieces.flatten(0, 1), of_piece.T)
        amounts = self._amounts(loop[:, _STEPS : _STEPS + 1] - shapes.largest, piece)
        return joined, amounts * shapes.is_node

    def words(self, batch: SegmentBatch) -> tuple[Tensor, Tensor]:
        """Returns the features of the loop [B,23], and of each node's piece [B,N,8]."""
        shapes = Shapes.of(batch)
        every = Shapes(*(rows_of(tensor, batch.segment) for tensor in shapes))
        loop, pieces, _ = self.cuts(every, batch.config)
        nodes = torch.cat([pieces, _whole(every)], -1)
        return loop @ self.loop_words.T, nodes @ self.piece_words.T

    def _piece_weights(self) -> tuple[Tensor, Tensor]:
        """Returns the weights of ``pieces`` [H,8], and of the two features of whole tensors."""
        return (self.pieces.weight @ self.piece_words / 4).split([RANK + 2, 2], 1)

    def _per_row(self, config: Tensor, loop: Tensor) -> Tensor:
        """Returns what the bounds and the loop add to all nodes: [B,H]."""
        first, relu, last = self.loop
        hidden = relu(F.linear(loop, first.weight @ self.loop_words / 4, first.bias))
        standard = self.standardise.of_logarithms(torch.log1p(config))
        return self.bounds(standard) + last(hidden)

    def _amounts(self, per_step: Tensor, piece: Tensor) -> Tensor:
        """Returns the elements that all steps access at a node, the steps, and 1: [B,3,N].

        The first two are relative to the largest tensor of the kernel, so they are costs per
        element of it: ``per_step`` [B,1] is the logarithm of the steps minus that of its elements.
        """
        per_amount = torch.addmm(self.step, per_step, self.has_steps)
        logarithms = piece.unsqueeze(1) * self.amounts_of + per_amount.unsqueeze(-1)
        return torch.exp(logarithms.clamp(max=LARGEST + log(SCALE)))

    def cuts(self, shapes: Shapes, config: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Returns features of the loop [B,22], of each node's piece of a tile [B,N,8], and the
        logarithms of the pieces' elements [B,N].

        Those of a piece are the logarithms of its dimensions and of its contiguous elements, and
        the elements that vectors of its minor-most dimension fill.
        """
        bounds = config[:, :_REDUCTION_AND_OUTPUT]
        logarithms = log_of(bounds)
        has = bounds.clamp(max=1)
        cut = torch.addmm(has @ self.cut_by_flags, logarithms, self.cut_by_logarithms)
        lengths = (cut.unsqueeze(1) @ shapes.lengths).view(-1, *shapes.whole.shape[1:])
        pieces = torch.minimum(lengths + shapes.uncut, shapes.whole)
        two, third, _ = pieces.split([2, 1, 3], -1)
        is_uncut = (two > shapes.whole[..., :2] - SAME).to(pieces.dtype)
        (minor, next_minor) = two.split(1, -1)
        (first, second) = is_uncut.split(1, -1)
        run = minor + (next_minor + third * second) * first
        filled = torch.exp(minor.clamp(max=log(VECTOR)))
        piece = pieces.sum(-1)
        loop = self._loop(shapes, bounds, has, piece)
        return loop, torch.cat([pieces, run, filled], -1), piece

    def _loop(self, shapes: Shapes, bounds: Tensor, has: Tensor, piece: Tensor) -> Tensor:
        """Returns the features of a tiled loop that apply to any kernel: [B,22]."""
        minors = (has @ self.is_minor) * (bounds @ self.twice)
        lengths = torch.addmm(bounds @ self.other_lengths, minors, self.minor_lengths)
        lengths, parts = torch.maximum(lengths, self.shortest).split([4, 15], -1)
        # A loop of 8 is vectorized differently from loops of 7 or 9.
        divisible = (parts == torch.floor(parts)).to(bounds.dtype)
        shrunk = shapes.total - piece
        tiles = (shrunk * shapes.at_output).sum(-1, keepdim=True)
        steps = (shrunk * shapes.at_inputs).amax(-1, keepdim=True)
        read = torch.logsumexp(piece + shapes.no_inputs, -1, keepdim=True)
        work = [tiles, steps, torch.relu(read)]
        return torch.cat([torch.log(lengths), *work, divisible], -1)


def _whole(shapes: Shapes) -> Tensor:
    """Returns logarithms of the elements and the minor-most dimensions of tensors: [S,N,2]."""
    return torch.cat([shapes.total.unsqueeze(-1), shapes.whole[..., :1]], -1)


def _constants() -> dict[str, Tensor]:
    """Returns the matrices that select columns, and other numbers that have nothing to train."""
    columns = torch.eye(_REDUCTION_AND_OUTPUT)
    bounds = columns[:, _OUTPUT : _OUTPUT + RANK]
    product = columns[:, [_REDUCTION_PRODUCT]]
    output = columns[:, [_OUTPUT_PRODUCT]]
    # The last bound is the one that has none after it.
    after = F.pad(bounds[:, 1:], (0, 2))
    is_last = bounds - after[:, :-1]
    is_before_last = after[:, :-1] - after[:, 1:]
    powers = 2.0 ** -torch.arange(1, 6)
    # Of the minor, the next minor and the reduction's length: themselves, and by powers of two.
    lengths = torch.cat([torch.eye(3, 4), torch.block_diag(*[powers] * 3)], -1)
    return {
        "loop_words": _loop_words(),
        "piece_words": piece_words(),
        "amounts_of": torch.tensor([[1.0], [0.0], [0.0]]),
        "has_steps": torch.tensor([[1.0, 1.0, 0.0]]),
        "step": torch.tensor([log(SCALE), STEP + log(SCALE), 0.0]),
        "cut_by_logarithms": F.pad(torch.cat([bounds, product], -1), (0, 1)),
        "cut_by_flags": F.pad(columns[:, [_REDUCTION_SUM]], (RANK + 1, 0)),
        "is_minor": torch.cat([is_last, is_before_last], -1),
        "twice": bounds.repeat(1, 2),
        "minor_lengths": lengths[:2].repeat_interleave(RANK, 0),
        "other_lengths": product @ lengths[2:] + F.pad(output, (3, 15)),
        "shortest": torch.cat([torch.ones(4), powers.repeat(3)]),
    }


def _loop_words() -> Tensor:
    """Maps the features of ``_loop`` to the inputs of the first layer: [23,22]."""
    minor, next_minor, reduction, output, *others = torch.eye(LOOP - 1)
    work = others[:3]
    divisible = others[3:]
    lengths = [minor, next_minor, reduction, output, reduction + output]
    return torch.stack([*lengths, *work, *(SCALE * word for word in divisible)])


def piece_words() -> Tensor:
    """Maps the features of a piece and two of the whole tensor to a node's features: [8,10].

    The two are its elements and its minor-most dimension. The sums are folded into the weights.
    """
    *pieces, run, filled, total, whole_minor = torch.eye(RANK + 4)
    piece = torch.stack(pieces).sum(0)
    (minor, next_minor, *_) = pieces
    cut = minor - whole_minor
    words = [piece, piece - total, minor, next_minor, cut, total, run, 4 / VECTOR * filled]
    return torch.stack(words)
