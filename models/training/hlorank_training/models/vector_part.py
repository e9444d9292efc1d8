"""The part of a model for tiles of two levels: the tile of a workgroup, cut into vectors."""

from dataclasses import replace
from math import log

import torch
from torch import Tensor, nn

from hlorank_training.models.segment_batch import SegmentBatch
from hlorank_training.models.tile_part import AMOUNTS, Shapes, TilePart

_KERNEL = slice(0, 8)
_OUTPUT = slice(8, 14)
_INPUT = slice(16, 22)
_LANES = 16.0
_REGISTERS = 32.0
"""f32 elements of a vector register, and registers."""
_RANK = 6
REGISTER_FEATURES = 17


class VectorTilePart(nn.Module):
    """Two ``TilePart``s, one for each level, and features of the vectors that both decide.

    Output bounds are the tile of a workgroup and input bounds are its vectors, both most minor
    dimension first. Kernel bounds are the steps of reductions that are unrolled with a vector.
    """

    Tensors = Shapes

    def __init__(self, hidden: int):
        super().__init__()
        self.workgroup = TilePart(hidden)
        self.vector = TilePart(hidden)
        self.registers = nn.Sequential(
            nn.Linear(REGISTER_FEATURES, hidden), nn.ReLU(), nn.Linear(hidden, hidden)
        )
        self.register_buffer("places", torch.arange(_RANK).float(), persistent=False)

    def fit(self, tiles: Tensor) -> None:
        """Computes the statistics of both levels from raw tiles [n,24]."""
        for part, level in zip((self.workgroup, self.vector), self._levels(tiles), strict=True):
            part.fit(level)

    def of_segments(self, batch: SegmentBatch) -> tuple[Shapes, Tensor]:
        """Returns what depends on the segments alone, and what is added to their nodes [S,N,H]."""
        shapes, nodes = self.workgroup.of_segments(batch)
        return shapes, nodes + self.vector.of_segments(batch)[1]

    def forward(self, shapes: Shapes, nodes: Tensor, config: Tensor) -> tuple[Tensor, Tensor]:
        """Joins ``nodes`` [B,N,H] and both levels to [B*N,H]; adds amounts and 1,
        [B,5,N]."""
        workgroup, vector = self._levels(config)
        row = self.registers(register_features(config)).unsqueeze(1)
        joined, amounts = self.workgroup(shapes, nodes + row, workgroup)
        joined, of_vectors = self.vector(shapes, joined.view(-1, *nodes.shape[1:]), vector)
        return joined, torch.cat([amounts[:, :AMOUNTS], of_vectors], 1)

    def words(self, batch: SegmentBatch) -> tuple[Tensor, Tensor]:
        """Returns the features of both loops and of registers [B,63], and of pieces [B,N,16]."""
        workgroup, vector = (replace(batch, config=c) for c in self._levels(batch.config))
        outer = self.workgroup.words(workgroup)
        inner = self.vector.words(vector)
        loop = torch.cat([outer[0], inner[0], register_features(batch.config)], -1)
        return loop, torch.cat([outer[1], inner[1]], -1)

    def _levels(self, config: Tensor) -> tuple[Tensor, Tensor]:
        """Returns both levels as tiles of one level, whose major dimension is first: [B,24]."""
        kernel = config[:, _KERNEL]
        rest = torch.zeros_like(config[:, :8])
        workgroup, vector = (self._major_first(config[:, k]) for k in (_OUTPUT, _INPUT))
        # A workgroup computes whole reductions, step by step.
        outer = torch.cat([torch.zeros_like(kernel), workgroup, rest], -1)
        return outer, torch.cat([kernel, vector, rest], -1)

    def _major_first(self, bounds: Tensor) -> Tensor:
        """Reverses bounds [B,6], and appends their sum and product."""
        last = (bounds > 0).to(bounds.dtype).sum(-1, keepdim=True) - 1
        place = (self.places == (last - self.places).unsqueeze(-1)).to(bounds.dtype)
        reversed_bounds = (place * bounds.unsqueeze(1)).sum(-1)
        total = bounds.sum(-1, keepdim=True)
        product = bounds.clamp(min=1).prod(-1, keepdim=True)
        return torch.cat([reversed_bounds, total, product], -1)


def register_features(config: Tensor) -> Tensor:
    """Returns how vectors fill registers and tiles: [B,17].

    These are logarithms of sizes, of the loads of a multiplication, and of wasted elements, and
    whether the minor-most dimensions are scalars or have a remainder.
    """
    tile = config[:, _OUTPUT].clamp(min=1)
    vector = config[:, _INPUT].clamp(min=1)
    unrolled = torch.log(config[:, 0:6].clamp(min=1)).sum(-1, keepdim=True)
    minor = vector[:, :1]
    next_minor = vector[:, 1:2]
    lanes = torch.ceil(minor / _LANES)
    registers = torch.log(lanes) + torch.log(vector[:, 1:]).sum(-1, keepdim=True)
    spilled = torch.relu(registers - log(_REGISTERS))
    steps = torch.ceil(tile / vector)
    padded = torch.log(steps * vector) - torch.log(tile)
    has_remainder = (padded[:, :3] > 1e-4).to(config.dtype)
    is_scalar = (vector[:, :2] == 1).to(config.dtype)
    sizes = [torch.log(vector[:, :2]), unrolled, registers, spilled, registers + unrolled]
    waste = [torch.log(lanes * _LANES / minor), padded.sum(-1, keepdim=True)]
    reuse = torch.log(lanes * next_minor / (lanes + next_minor))
    count = torch.log(steps).sum(-1, keepdim=True)
    filled = (minor == lanes * _LANES).to(config.dtype)
    rows = torch.log(vector[:, 1:]).sum(-1, keepdim=True)
    return torch.cat([*sizes, *waste, reuse, count, filled, rows, has_remainder, is_scalar], -1)
