"""The tile configuration's part of a model."""

from dataclasses import dataclass
from math import log

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hlorank_training.models.graph_layers import Standardise, rows_of
from hlorank_training.models.segment_batch import SegmentBatch

TILE_FEATURES = 24
LOOP, PIECES = 8 + 3 * 5, 8
"""Numbers of features of the loop over tiles, and of every node's piece of a tile."""
STEPS, READ = 6, 7
"""Columns of the loop: logarithms of its steps, and of the elements that a step reads."""
_STEPS = 5
"""Column of the steps in ``cuts``, which has one column less."""
AMOUNTS = 2
_STEP, _SCALE, _LARGEST, _SAME = 6.0, 4.0, 12.0, 1e-3
"""Logarithms: cost of a step in elements, and bounds; ``_SCALE`` brings most amounts near 1."""
_REDUCTION_COUNT, _REDUCTION_PRODUCT = slice(0, 6), 7
_OUTPUT, _OUTPUT_PRODUCT = slice(8, 14), 15
_RANK = 6
_PARAMETER = 63
"""Opcode of a kernel's inputs."""
_HALO = 4
"""Maximum difference of an input's dimension to the output's in a stencil or a convolution."""
_VECTOR = 16.0
"""Elements of one vector instruction."""
_NONE = -1e9
"""Marks a dimension that equals no other."""


@dataclass(frozen=True)
class Shapes:
    """The tensors of S kernels: minor-most dimensions first, nodes last."""

    whole: Tensor
    """f32 [S,6,N]: logarithms of the dimensions"""
    total: Tensor
    """f32 [S,1,N]: logarithms of the numbers of elements"""
    follows: Tensor
    """f32 [S,6N,9]: maps the result of ``_cut_by`` to the lengths of dimensions in one tile"""
    output: Tensor
    """f32 [S,6]: logarithms of the output's dimensions, major dimension first"""
    at_output: Tensor
    """f32 [S,1,N]: 1 at the output"""
    at_inputs: Tensor
    """f32 [S,1,N]: 1 at the kernel's inputs"""


class TilePart(nn.Module):
    """The configuration's part of the first layer, and the amounts of every node.

    The bounds alone do not generalize to unseen kernels, so every node also has features of the
    piece of its tensor that one tile accesses. A dimension is cut like the output dimension of the
    same size; a dimension that the output lacks is cut like the reduction.

    Features of nodes are laid out as [B,features,N], since ONNX Runtime is slow along short rows.
    """

    def __init__(self, hidden: int):
        super().__init__()
        self.standardise = Standardise(TILE_FEATURES)
        self.bounds = nn.Linear(TILE_FEATURES, hidden)
        self.loop = nn.Sequential(nn.Linear(LOOP, hidden), nn.ReLU(), nn.Linear(hidden, hidden))
        self.pieces = nn.Linear(PIECES, hidden)
        self.register_buffer("places", torch.arange(_RANK).float(), persistent=False)
        self.register_buffer("powers", 2.0 ** torch.arange(1, 6), persistent=False)
        self.register_buffer("diagonal", torch.eye(_RANK), persistent=False)
        self.register_buffer("loop_words", _loop_words(), persistent=False)
        self.register_buffer("piece_words", _piece_words(), persistent=False)
        self.register_buffer("amounts_of", torch.tensor([[1.0], [0.0]]), persistent=False)
        self.register_buffer("step", torch.tensor([[0.0], [_STEP]]), persistent=False)

    def fit(self, tiles: Tensor) -> None:
        """Computes the statistics of the standardization from raw tiles [n,24]."""
        self.standardise.fit(tiles)

    def forward(self, batch: SegmentBatch, static: Tensor) -> tuple[Tensor, Tensor]:
        """Joins ``static`` [S,N,H] and the configuration to [B,N,H]; adds amounts [B,2,N]."""
        shapes = self.shapes(batch)
        loop, pieces = self.cuts(batch, shapes)
        of_piece, of_whole = (self.pieces.weight @ self.piece_words / 4).split([5, 2], 1)
        static = static + _whole(shapes).mT @ of_whole.T + self.pieces.bias
        joined = pieces.mT @ of_piece.T + rows_of(static, batch.segment)
        per_step = loop[:, _STEPS : _STEPS + 1] - rows_of(shapes.total.amax(-1), batch.segment)
        amounts = self._amounts(per_step.unsqueeze(-1), pieces[:, :1])
        return joined + self._per_row(batch, loop).unsqueeze(1), amounts

    def words(self, batch: SegmentBatch) -> tuple[Tensor, Tensor]:
        """Returns the features of the loop [B,23], and of each node's piece [B,N,8]."""
        shapes = self.shapes(batch)
        loop, pieces = self.cuts(batch, shapes)
        nodes = torch.cat([pieces, rows_of(_whole(shapes), batch.segment)], 1)
        return loop @ self.loop_words.T, nodes.mT @ self.piece_words.T

    def _per_row(self, batch: SegmentBatch, loop: Tensor) -> Tensor:
        """Returns what the bounds and the loop add to all nodes: [B,H]."""
        first, relu, last = self.loop
        hidden = relu(F.linear(loop, first.weight @ self.loop_words / 4, first.bias))
        return self.bounds(self.standardise(batch.config)) + last(hidden)

    def _amounts(self, per_step: Tensor, piece: Tensor) -> Tensor:
        """Returns the elements that all steps access at a node, and the steps: [B,2,N].

        Both are relative to the largest tensor of the kernel, so they are costs per element of it:
        ``per_step`` [B,1,1] is the logarithm of the steps minus that of its elements.
        """
        logarithms = piece * self.amounts_of + self.step + (per_step + log(_SCALE))
        return torch.exp(logarithms.clamp(max=_LARGEST + log(_SCALE)))

    def cuts(self, batch: SegmentBatch, shapes: Shapes) -> tuple[Tensor, Tensor]:
        """Returns features of the loop [B,22], and of each node's piece of a tile [B,5,N].

        The latter are logarithms of its elements, of its two minor-most dimensions and of its
        contiguous elements, and the elements that vectors of its minor-most dimension fill.
        """
        whole = rows_of(shapes.whole, batch.segment)
        lengths = rows_of(shapes.follows, batch.segment) @ _cut_by(batch, shapes)
        pieces = torch.minimum(lengths.view(batch.segment.shape[0], _RANK, -1), whole)
        minor, next_minor, third = pieces.split([1, 1, 1, 3], 1)[:3]
        uncut = (whole[:, :2] - pieces[:, :2] < _SAME).to(pieces.dtype)
        run = minor + (next_minor + third * uncut[:, 1:]) * uncut[:, :1]
        filled = torch.exp(minor).clamp(max=_VECTOR)
        piece = pieces.sum(1, keepdim=True)
        return self._loop(batch, shapes, piece), torch.cat(
            [piece, minor, next_minor, run, filled], 1
        )

    def _loop(self, batch: SegmentBatch, shapes: Shapes, piece: Tensor) -> Tensor:
        """Returns the features of a tiled loop that apply to any kernel: [B,22]."""
        bounds = batch.config[:, _OUTPUT]
        last = (bounds > 0).to(bounds.dtype).sum(-1, keepdim=True) - 1
        chosen = (self.places == (last - self.places[:2]).unsqueeze(-1)).to(bounds.dtype)
        lengths = _lengths(batch, chosen, batch.config)
        parts = lengths[:, :3].clamp(min=1).unsqueeze(-1) / self.powers
        # A loop of 8 is vectorized differently from loops of 7 or 9.
        divisible = (parts == torch.floor(parts)).to(bounds.dtype).flatten(1)
        shrunk = rows_of(shapes.total, batch.segment) - piece
        inputs = rows_of(shapes.at_inputs, batch.segment)
        tiles = (shrunk * rows_of(shapes.at_output, batch.segment)).sum(-1)
        steps = (shrunk * inputs).amax(-1)
        read = torch.logsumexp(piece + (1 - inputs) * _NONE, -1).clamp(min=0)
        logarithms = _lengths(batch, chosen, _log(batch.config))
        return torch.cat([logarithms, tiles, steps, read, divisible], -1)

    def shapes(self, batch: SegmentBatch) -> Shapes:
        """Computes the properties of kernels, once for all tiles of a kernel."""
        sizes = batch.dimensions() * batch.mask.unsqueeze(-1)
        at_output = batch.output_node().unsqueeze(1)
        at_inputs = (batch.opcode == _PARAMETER).to(sizes.dtype) * batch.mask
        output = at_output @ sizes
        rank, output_rank = ((x > 0).to(sizes.dtype).sum(-1, keepdim=True) for x in (sizes, output))
        matches, reduced = self._matches(sizes, output, rank == output_rank)
        whole = _log(sizes)
        total = whole.sum(-1).unsqueeze(1)
        cuts = torch.stack([reduced, reduced * whole, (1 - reduced) * whole, whole], -1)
        # The place of each dimension, counted from the minor-most: [S,N,6,6].
        place = (self.places == (rank - 1 - self.places).unsqueeze(-1)).to(sizes.dtype)
        ordered = (place @ torch.cat([matches, cuts], -1)).transpose(1, 2)
        follows, whole = ordered.split([_RANK + 3, 1], -1)
        whole = whole.squeeze(-1)
        return Shapes(
            whole,
            total,
            follows.flatten(1, 2),
            _log(output).squeeze(1),
            at_output,
            at_inputs.unsqueeze(1),
        )

    def _matches(self, sizes: Tensor, output: Tensor, same_rank: Tensor) -> tuple[Tensor, Tensor]:
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
        matches = elsewhere + (in_place + near).unsqueeze(-1) * self.diagonal
        return matches, (sizes > 1).to(sizes.dtype) - some - near


def _whole(shapes: Shapes) -> Tensor:
    """Returns logarithms of the elements and the minor-most dimensions of tensors: [S,2,N]."""
    return torch.cat([shapes.total, shapes.whole[:, :1]], 1)


def _lengths(batch: SegmentBatch, chosen: Tensor, config: Tensor) -> Tensor:
    """Returns bounds of a ``config`` [B,24] or of its logarithms: [B,4].

    These are the tile's two minor-most bounds, which ``chosen`` [B,2,6] selects, and the products
    of the reduction's and of the output's bounds.
    """
    minors = (chosen * config[:, _OUTPUT].unsqueeze(1)).sum(-1)
    products = [config[:, k : k + 1] for k in (_REDUCTION_PRODUCT, _OUTPUT_PRODUCT)]
    return torch.cat([minors, *products], -1)


def _cut_by(batch: SegmentBatch, shapes: Shapes) -> Tensor:
    """Returns how a tile cuts dimensions, as logarithms: [B,9,1].

    These are the tile's length relative to each output dimension, its length along the reduction,
    whether the reduction is untiled, and 1.
    """
    # Of all columns: ONNX Runtime rounds the last elements differently if they are not a multiple
    # of four.
    logarithms = _log(batch.config)
    shorter = logarithms[:, _OUTPUT] - rows_of(shapes.output, batch.segment)
    reduced = batch.config[:, _REDUCTION_COUNT].amax(-1, keepdim=True) > 0
    tiled = reduced.to(logarithms.dtype)
    bound = logarithms[:, _REDUCTION_PRODUCT : _REDUCTION_PRODUCT + 1] * tiled
    return torch.cat([shorter, bound, 1 - tiled, torch.ones_like(tiled)], -1).unsqueeze(-1)


def _near(sizes: Tensor, output: Tensor) -> Tensor:
    """Finds dimensions a little longer than the output's in the same place, or twice as long."""
    long = torch.where(output > 2 * _HALO, output, _NONE)
    longer = sizes - long
    halo = (longer > 0) & (longer <= _HALO)
    return halo | (torch.abs(longer - long) <= 1)


def _loop_words() -> Tensor:
    """Maps the features of ``_loop`` to the inputs of the first layer: [23,22]."""
    minor, next_minor, reduction, output, *others = torch.eye(LOOP - 1)
    work, divisible = others[:3], others[3:]
    lengths = [minor, next_minor, reduction, output, reduction + output]
    return torch.stack([*lengths, *work, *(_SCALE * word for word in divisible)])


def _piece_words() -> Tensor:
    """Maps the five features of a piece and two of the whole tensor to a node's features: [8,7].

    The two are its elements and its minor-most dimension. The sums are folded into the weights.
    """
    piece, minor, next_minor, run, filled, total, whole_minor = torch.eye(7)
    cut = minor - whole_minor
    words = [piece, piece - total, minor, next_minor, cut, total, run, 4 / _VECTOR * filled]
    return torch.stack(words)


def _log(x: Tensor) -> Tensor:
    return torch.log(x.clamp(min=1))
