"""What a tile configuration adds to every node of a kernel."""

import torch
from torch import Tensor, nn

from .graph_layers import Standardise, rows_of
from .segment_batch import SegmentBatch

TILE_FEATURES = 24
LOOP, PIECES = 8 + 3 * 5, 8
"""What ``cuts`` says of a row, and of every node."""
STEPS, READ = 6, 7
"""Columns of the loop: logarithms of its steps, and of the elements that one of them reads."""
_PIECE, _TOTAL = 0, 5
"""Columns of the pieces: logarithms of the elements in one tile, and in the whole tensor."""
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


class TilePart(nn.Module):
    """The configuration's part of the first layer: [B,N,H].

    The bounds themselves say little about a kernel that no training saw. So every node also
    sees which piece of its tensor one tile touches: a dimension is cut as the output dimension
    of the same size is, and one that the output lacks as the reduction is.
    """

    def __init__(self, hidden: int):
        super().__init__()
        self.standardise = Standardise(TILE_FEATURES)
        self.bounds = nn.Linear(TILE_FEATURES, hidden)
        self.loop = nn.Sequential(nn.Linear(LOOP, hidden), nn.ReLU(), nn.Linear(hidden, hidden))
        self.pieces = nn.Linear(PIECES, hidden)
        self.register_buffer("places", torch.arange(_RANK), persistent=False)
        self.register_buffer("powers", 2.0 ** torch.arange(1, 6), persistent=False)
        self.register_buffer("diagonal", torch.eye(_RANK), persistent=False)

    def forward(self, batch: SegmentBatch) -> tuple[Tensor, Tensor]:
        loop, pieces = self.cuts(batch)
        per_row = self.bounds(self.standardise(batch.config)) + self.loop(loop / 4)
        return per_row.unsqueeze(1) + self.pieces(pieces / 4), _amounts(loop, pieces)

    def cuts(self, batch: SegmentBatch) -> tuple[Tensor, Tensor]:
        """What the loop over tiles is like, [B,23], and each node's piece of a tile, [B,N,8]."""
        pieces, whole = self._pieces(batch)
        ends = [self._from_the_end(batch, pieces, k) for k in (1, 2, 3)]
        wholes = [self._from_the_end(batch, whole, k) for k in (1, 2, 3)]
        piece, total = pieces.sum(-1), whole.sum(-1)
        filled = (torch.exp(ends[0]) / _VECTOR).clamp(max=1)
        run = _contiguous(ends, wholes)
        cut = ends[0] - wholes[0]
        node = [piece, piece - total, ends[0], ends[1], cut, total, run, 4 * filled]
        return self._loop(batch, piece, total), torch.stack(node, -1)

    def _pieces(self, batch: SegmentBatch) -> tuple[Tensor, Tensor]:
        """Logarithms of how long every dimension is in one tile, and as a whole: [B,N,6]."""
        matches, reduced = self._matches(batch)
        output = (batch.output_node().unsqueeze(1) @ batch.dimensions()).squeeze(1)
        cut = _log(batch.config[:, _OUTPUT]) - _log(rows_of(output, batch.segment))
        whole = rows_of(_log(batch.dimensions()), batch.segment)
        along_output = rows_of(matches.flatten(1, 2), batch.segment) @ cut.unsqueeze(-1)
        tiled = (batch.config[:, _REDUCTION_COUNT] > 0).any(-1).to(whole.dtype)
        bound = _log(batch.config[:, _REDUCTION_PRODUCT])[:, None, None]
        along_reduction = (bound - whole).clamp(max=0) * rows_of(reduced, batch.segment)
        cuts = along_output.unflatten(1, whole.shape[1:]).squeeze(-1)
        return whole + cuts.clamp(max=0) + along_reduction * tiled[:, None, None], whole

    def _matches(self, batch: SegmentBatch) -> tuple[Tensor, Tensor]:
        """Which output dimension each dimension follows, [S,N,6,6], and which none, [S,N,6]."""
        sizes = batch.dimensions()
        output = batch.output_node().unsqueeze(1) @ sizes
        real = (sizes > 1).to(sizes.dtype)
        left, right = sizes.unsqueeze(-1), output.unsqueeze(-2)
        equal = (left == right).to(sizes.dtype) * real.unsqueeze(-1)
        in_place = equal * self.diagonal
        elsewhere = equal * (1 - in_place.sum(-1, keepdim=True))
        elsewhere = elsewhere / elsewhere.sum(-1, keepdim=True).clamp(min=1)
        exact = in_place + elsewhere
        near = self._near(sizes, output) * real.unsqueeze(-1)
        matches = exact + near * (1 - exact.sum(-1, keepdim=True))
        return matches, real * (1 - matches.sum(-1))

    def _near(self, sizes: Tensor, output: Tensor) -> Tensor:
        """Dimensions in the place of an output dimension that are a little longer, or twice."""
        longer = sizes - output
        rank = (sizes > 0).sum(-1, keepdim=True) == (output > 0).sum(-1, keepdim=True)
        halo = (longer > 0) & (longer <= _HALO)
        twice = torch.abs(longer - output) <= 1
        near = (halo | twice) & rank & (output > 2 * _HALO)
        return near.to(sizes.dtype).unsqueeze(-1) * self.diagonal

    def _loop(self, batch: SegmentBatch, piece: Tensor, total: Tensor) -> Tensor:
        """[B,23]: what any tiled loop depends on, whatever the kernel."""
        config = batch.config
        reduction, output = _log(config[:, _REDUCTION_PRODUCT]), _log(config[:, _OUTPUT_PRODUCT])
        bounds = config[:, _OUTPUT]
        rank = (bounds > 0).sum(-1, keepdim=True)
        minor, next_minor = (
            (bounds * (self.places == rank - k).to(bounds.dtype)).sum(-1) for k in (1, 2)
        )
        inputs = (batch.opcode == _PARAMETER).to(total.dtype) * batch.mask
        read = (torch.exp(piece) * rows_of(inputs, batch.segment)).sum(-1)
        at_output = rows_of(batch.output_node(), batch.segment)
        tiles = ((total - piece) * at_output).sum(-1)
        steps = ((total - piece) * rows_of(inputs, batch.segment)).amax(-1)
        shape = [_log(minor), _log(next_minor), reduction, output, reduction + output]
        work = [tiles, steps, _log(read)]
        inner = torch.stack([minor, next_minor, config[:, _REDUCTION_PRODUCT]], -1)
        return torch.cat([torch.stack([*shape, *work], -1), self._divisible(inner)], -1)

    def _divisible(self, lengths: Tensor) -> Tensor:
        """[B,3] to [B,15]: a vectoriser treats a loop of 8 unlike one of 7 or 9."""
        parts = lengths.clamp(min=1).unsqueeze(-1) / self.powers
        return _SCALE * (parts == torch.floor(parts)).to(lengths.dtype).flatten(1)

    def _from_the_end(self, batch: SegmentBatch, logarithms: Tensor, k: int) -> Tensor:
        """The ``k``-th dimension counted from the minor-most, [B,N]."""
        rank = (batch.dimensions() > 0).sum(-1, keepdim=True)
        chosen = (self.places == rank - k).to(logarithms.dtype)
        return (logarithms * rows_of(chosen, batch.segment)).sum(-1)


def _amounts(loop: Tensor, pieces: Tensor) -> Tensor:
    """[B,N,2]: elements that all steps together touch at a node, and the steps themselves.

    Both relative to the largest tensor of the kernel, so that they are costs per element of it.
    """
    steps, piece, total = loop[:, None, STEPS], pieces[..., _PIECE], pieces[..., _TOTAL]
    per_step = steps - total.amax(-1, keepdim=True)
    touched = torch.exp((per_step + piece).clamp(max=_LARGEST))
    started = torch.exp((per_step + _STEP).clamp(max=_LARGEST))
    return torch.stack([touched, started.expand_as(touched)], -1) * _SCALE


def _contiguous(ends: list[Tensor], wholes: list[Tensor]) -> Tensor:
    """Logarithm of how many elements of a piece lie behind each other in memory, [B,N]."""
    run = ends[-1]
    for end, whole in zip(ends[-2::-1], wholes[-2::-1], strict=True):
        run = end + run * (whole - end < _SAME).to(run.dtype)
    return run


def _log(x: Tensor) -> Tensor:
    return torch.log(x.clamp(min=1))
