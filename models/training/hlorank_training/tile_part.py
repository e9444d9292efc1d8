"""What a tile configuration adds to every node of a kernel."""

import torch
from torch import Tensor, nn

from .graph_layers import Standardise, rows_of
from .segment_batch import SegmentBatch

TILE_FEATURES = 24
LOOP, PIECES = 10, 6
"""What ``cuts`` says of a row, and of every node."""
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
        self.register_buffer("diagonal", torch.eye(_RANK), persistent=False)

    def forward(self, batch: SegmentBatch) -> Tensor:
        loop, pieces = self.cuts(batch)
        per_row = self.bounds(self.standardise(batch.config)) + self.loop(loop / 4)
        return per_row.unsqueeze(1) + self.pieces(pieces / 4)

    def cuts(self, batch: SegmentBatch) -> tuple[Tensor, Tensor]:
        """What the loop over tiles is like, [B,10], and each node's piece of a tile, [B,N,6]."""
        pieces, whole = self._pieces(batch)
        minor, next_minor = (self._from_the_end(batch, pieces, k) for k in (1, 2))
        whole_minor = self._from_the_end(batch, whole, 1)
        piece, total = pieces.sum(-1), whole.sum(-1)
        node = [piece, piece - total, minor, next_minor, minor - whole_minor, total]
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
        return ((halo | twice) & rank & (output > 2 * _HALO)).to(sizes.dtype).unsqueeze(
            -1
        ) * self.diagonal

    def _loop(self, batch: SegmentBatch, piece: Tensor, total: Tensor) -> Tensor:
        """[B,10]: what any tiled loop depends on, whatever the kernel."""
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
        filled = minor / _VECTOR
        return torch.stack(
            [
                _log(minor),
                _log(next_minor),
                reduction,
                output,
                reduction + output,
                tiles,
                steps,
                _log(read),
                4 * filled.clamp(max=1),
                4 * (filled - torch.floor(filled)),
            ],
            -1,
        )

    def _from_the_end(self, batch: SegmentBatch, logarithms: Tensor, k: int) -> Tensor:
        """The ``k``-th dimension counted from the minor-most, [B,N]."""
        rank = (batch.dimensions() > 0).sum(-1, keepdim=True)
        chosen = (self.places == rank - k).to(logarithms.dtype)
        return (logarithms * rows_of(chosen, batch.segment)).sum(-1)


def _log(x: Tensor) -> Tensor:
    return torch.log(x.clamp(min=1))
