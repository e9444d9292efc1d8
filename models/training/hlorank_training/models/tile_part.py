"""What a tile configuration adds to every node of a kernel."""

from dataclasses import dataclass
from math import log

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hlorank_training.models.graph_layers import Standardise, rows_of
from hlorank_training.models.segment_batch import SegmentBatch

TILE_FEATURES = 24
LOOP, PIECES = 8 + 3 * 5, 8
"""What is said of the loop over tiles, and of every node's piece of a tile."""
STEPS, READ = 6, 7
"""Columns of the loop: logarithms of its steps, and of the elements that one of them reads."""
_STEPS = 5
"""The former among the columns of ``cuts``, of which one less is enough."""
AMOUNTS = 2
_STEP, _SCALE, _LARGEST, _SAME = 6.0, 4.0, 12.0, 1e-3
"""In logarithms: what a step costs in elements, and bounds; ``_SCALE`` puts most amounts near 1."""
_REDUCTION_COUNT, _REDUCTION_PRODUCT = slice(0, 6), 7
_OUTPUT, _OUTPUT_PRODUCT = slice(8, 14), 15
_RANK = 6
_PARAMETER = 63
"""The opcode of a kernel's inputs."""
_HALO = 4
"""By how much an input of a stencil or a convolution may outgrow the output."""
_VECTOR = 16.0
"""Elements that one vector instruction may take."""
_NONE = -1e9
"""Stands for a dimension that no other shall be like."""


@dataclass(frozen=True)
class Shapes:
    """The tensors of S kernels: dimensions from the minor-most on, nodes last."""

    whole: Tensor
    """f32 [S,6,N]: logarithms of how long every dimension is"""
    total: Tensor
    """f32 [S,1,N]: logarithms of how many elements the tensors have"""
    follows: Tensor
    """f32 [S,6N,9]: how long a dimension is in one tile, from what ``_cut_by`` says of the tile"""
    output: Tensor
    """f32 [S,6]: logarithms of the output's dimensions, major dimension first"""
    at_output: Tensor
    """f32 [S,1,N]: 1 at the output"""
    at_inputs: Tensor
    """f32 [S,1,N]: 1 at the kernel's inputs"""


class TilePart(nn.Module):
    """The configuration's part of the first layer, and what it makes every node cost.

    The bounds themselves say little about a kernel that no training saw. So every node also
    sees which piece of its tensor one tile touches: a dimension is cut as the output dimension
    of the same size is, and one that the output lacks as the reduction is.

    What is said of nodes lies as [B,words,N]: ONNX Runtime is slow along short rows.
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

    def forward(self, batch: SegmentBatch, static: Tensor) -> tuple[Tensor, Tensor]:
        """``static`` [S,N,H] and the configuration, joined to [B,N,H], and amounts [B,2,N]."""
        shapes = self.shapes(batch)
        loop, pieces = self.cuts(batch, shapes)
        of_piece, of_whole = (self.pieces.weight @ self.piece_words / 4).split([5, 2], 1)
        static = static + _whole(shapes).mT @ of_whole.T + self.pieces.bias
        joined = pieces.mT @ of_piece.T + rows_of(static, batch.segment)
        per_step = loop[:, _STEPS : _STEPS + 1] - rows_of(shapes.total.amax(-1), batch.segment)
        amounts = self._amounts(per_step.unsqueeze(-1), pieces[:, :1])
        return joined + self._per_row(batch, loop).unsqueeze(1), amounts

    def words(self, batch: SegmentBatch) -> tuple[Tensor, Tensor]:
        """All that the weights are for: of the loop, [B,23], and of each node's piece, [B,N,8]."""
        shapes = self.shapes(batch)
        loop, pieces = self.cuts(batch, shapes)
        nodes = torch.cat([pieces, rows_of(_whole(shapes), batch.segment)], 1)
        return loop @ self.loop_words.T, nodes.mT @ self.piece_words.T

    def _per_row(self, batch: SegmentBatch, loop: Tensor) -> Tensor:
        """[B,H]: what the bounds and the loop over tiles add to all nodes."""
        first, relu, last = self.loop
        hidden = relu(F.linear(loop, first.weight @ self.loop_words / 4, first.bias))
        return self.bounds(self.standardise(batch.config)) + last(hidden)

    def _amounts(self, per_step: Tensor, piece: Tensor) -> Tensor:
        """[B,2,N]: elements that all steps together touch at a node, and the steps themselves.

        Both relative to the largest tensor of the kernel, so that they are costs per element of
        it: ``per_step`` [B,1,1] is the logarithm of the steps less that of its elements.
        """
        logarithms = piece * self.amounts_of + self.step + (per_step + log(_SCALE))
        return torch.exp(logarithms.clamp(max=_LARGEST + log(_SCALE)))

    def cuts(self, batch: SegmentBatch, shapes: Shapes) -> tuple[Tensor, Tensor]:
        """What the loop over tiles is like, [B,22], and each node's piece of a tile, [B,5,N]:
        logarithms of its elements, of its two minor-most dimensions and of how many elements
        lie behind each other, and how many elements a vector of its minor-most one takes."""
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
        """[B,22]: what any tiled loop depends on, whatever the kernel."""
        bounds = batch.config[:, _OUTPUT]
        last = (bounds > 0).to(bounds.dtype).sum(-1, keepdim=True) - 1
        chosen = (self.places == (last - self.places[:2]).unsqueeze(-1)).to(bounds.dtype)
        lengths = _lengths(batch, chosen, batch.config)
        parts = lengths[:, :3].clamp(min=1).unsqueeze(-1) / self.powers
        # A vectoriser treats a loop of 8 unlike one of 7 or 9.
        divisible = (parts == torch.floor(parts)).to(bounds.dtype).flatten(1)
        shrunk = rows_of(shapes.total, batch.segment) - piece
        inputs = rows_of(shapes.at_inputs, batch.segment)
        tiles = (shrunk * rows_of(shapes.at_output, batch.segment)).sum(-1)
        steps = (shrunk * inputs).amax(-1)
        read = torch.logsumexp(piece + (1 - inputs) * _NONE, -1).clamp(min=0)
        logarithms = _lengths(batch, chosen, _log(batch.config))
        return torch.cat([logarithms, tiles, steps, read, divisible], -1)

    def shapes(self, batch: SegmentBatch) -> Shapes:
        """What the kernels alone say; computed once for all tiles of a kernel."""
        sizes = batch.dimensions() * batch.mask.unsqueeze(-1)
        at_output = batch.output_node().unsqueeze(1)
        at_inputs = (batch.opcode == _PARAMETER).to(sizes.dtype) * batch.mask
        output = at_output @ sizes
        rank, output_rank = ((x > 0).to(sizes.dtype).sum(-1, keepdim=True) for x in (sizes, output))
        matches, reduced = self._matches(sizes, output, rank == output_rank)
        whole = _log(sizes)
        total = whole.sum(-1).unsqueeze(1)
        cuts = torch.stack([reduced, reduced * whole, (1 - reduced) * whole, whole], -1)
        # Which place a dimension has, counted from the minor-most: [S,N,6,6].
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
        """Which output dimension each dimension follows, [S,N,6,6], and which none, [S,N,6].

        ``sizes`` [S,N,6] and ``output`` [S,1,6]; the one in the same place goes before others.
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
    """[S,2,N]: logarithms of the elements of whole tensors, and of their minor-most dimensions."""
    return torch.cat([shapes.total, shapes.whole[:, :1]], 1)


def _lengths(batch: SegmentBatch, chosen: Tensor, config: Tensor) -> Tensor:
    """[B,4] of a ``config`` [B,24] or its logarithms: the tile's two minor-most bounds, which
    ``chosen`` [B,2,6] names, and the products of all for the reduction and for the output."""
    minors = (chosen * config[:, _OUTPUT].unsqueeze(1)).sum(-1)
    products = [config[:, k : k + 1] for k in (_REDUCTION_PRODUCT, _OUTPUT_PRODUCT)]
    return torch.cat([minors, *products], -1)


def _cut_by(batch: SegmentBatch, shapes: Shapes) -> Tensor:
    """[B,9,1]: by how much a tile is shorter than each output dimension, how long it is along a
    reduction, whether it leaves that whole, and 1. Logarithms."""
    # Of all columns: ONNX Runtime rounds the last few of a tensor apart, unless it is whole fours.
    logarithms = _log(batch.config)
    shorter = logarithms[:, _OUTPUT] - rows_of(shapes.output, batch.segment)
    reduced = batch.config[:, _REDUCTION_COUNT].amax(-1, keepdim=True) > 0
    tiled = reduced.to(logarithms.dtype)
    bound = logarithms[:, _REDUCTION_PRODUCT : _REDUCTION_PRODUCT + 1] * tiled
    return torch.cat([shorter, bound, 1 - tiled, torch.ones_like(tiled)], -1).unsqueeze(-1)


def _near(sizes: Tensor, output: Tensor) -> Tensor:
    """Dimensions that are a little longer than the output's in the same place, or twice."""
    long = torch.where(output > 2 * _HALO, output, _NONE)
    longer = sizes - long
    halo = (longer > 0) & (longer <= _HALO)
    return halo | (torch.abs(longer - long) <= 1)


def _loop_words() -> Tensor:
    """[23,22]: how the words that the first layer takes are made of those of ``_loop``."""
    minor, next_minor, reduction, output, *others = torch.eye(LOOP - 1)
    work, divisible = others[:3], others[3:]
    lengths = [minor, next_minor, reduction, output, reduction + output]
    return torch.stack([*lengths, *work, *(_SCALE * word for word in divisible)])


def _piece_words() -> Tensor:
    """[8,7]: how the words that a node sees are made of the five of its piece and two of the
    whole tensor, its elements and its minor-most dimension. The weights take the sums in."""
    piece, minor, next_minor, run, filled, total, whole_minor = torch.eye(7)
    cut = minor - whole_minor
    words = [piece, piece - total, minor, next_minor, cut, total, run, 4 / _VECTOR * filled]
    return torch.stack(words)


def _log(x: Tensor) -> Tensor:
    return torch.log(x.clamp(min=1))
