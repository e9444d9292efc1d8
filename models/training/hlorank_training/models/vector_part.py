"""The part of a model for tiles of two levels: the tile of a workgroup, cut into vectors."""

from math import log

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hlorank_training.models.graph_layers import Standardise, rows_apart, rows_of
from hlorank_training.models.segment_model import TILE_FEATURES, SegmentBatch
from hlorank_training.models.tile_part import (
    LARGEST,
    PIECES,
    RANK,
    SCALE,
    STEP,
    Shapes,
    piece_words,
)
from hlorank_training.models.vector_shapes import LACKS, MINOR, NEXT, OTHERS, VectorShapes
from hlorank_training.models.vector_words import (
    LEVELS,
    PARTS,
    cut_matrix,
    row_matrices,
    row_words,
    step_words,
)

AMOUNTS = 2 * LEVELS
_UNLIMITED = 1e30
"""More than any bound. ONNX Runtime clips to two limits faster than to one."""
_LOGARITHMS = (AMOUNTS + 1, LEVELS, 2 * LEVELS)
"""Logarithms of a node: of amounts and 1, of what a step reads, and of the tiles and the steps."""


class VectorTilePart(nn.Module):
    """Features of both levels' loops, and of the pieces that they cut of every node.

    Output bounds are the tile of a workgroup and input bounds are its vectors, both most minor
    dimension first. Kernel bounds are the steps of reductions that are unrolled with a vector.

    The number of operations counts as in ``TilePart``. So all numbers of a row are computed
    together, for both levels, and so are all numbers of a node.
    """

    Tensors = VectorShapes

    def __init__(self, hidden: int):
        super().__init__()
        words = row_words(SCALE)
        self.standardise = Standardise(TILE_FEATURES)
        self.bounds = nn.Linear(TILE_FEATURES, hidden, bias=False)
        self.first = nn.ModuleList(nn.Linear(len(some), hidden) for some in words)
        self.last = nn.Linear(len(words) * hidden, hidden)
        self.pieces = nn.Linear(LEVELS * PIECES, hidden)
        self.row_words = [f"words_of_{layer}" for layer in range(len(words))]
        constants = _constants() | dict(zip(self.row_words, words, strict=True))
        for name, constant in constants.items():
            self.register_buffer(name, constant, persistent=False)

    def fit(self, tiles: Tensor) -> None:
        """Computes the statistics of the standardization from raw tiles [n,24]."""
        self.standardise.fit(tiles)

    def of_segments(self, batch: SegmentBatch) -> tuple[VectorShapes, Tensor]:
        """Returns what depends on the segments alone, and what is added to their nodes [S,N,H]."""
        shapes = Shapes.of(batch)
        of_whole = self.pieces.weight @ self.whole_words / SCALE
        added = _whole(shapes) @ of_whole.T + self.pieces.bias
        return VectorShapes.of(batch, shapes), added

    def forward(
        self, shapes: VectorShapes, nodes: Tensor, config: Tensor, loops: Tensor | float
    ) -> tuple[Tensor, Tensor]:
        """Joins ``nodes`` [B,N,H], the tiles [B,24] and ``loops`` [B,H] to [B*N,H].

        Adds amounts and 1, [B,5,N], which are 0 at padding.
        """
        row, bounds, pieces, amounts = self.cuts(shapes, config)
        given = (self._per_row(row, bounds) + loops).unsqueeze(1) + nodes
        of_pieces = self.pieces.weight @ self.cut_words / SCALE
        joined = torch.addmm(given.flatten(0, 1), pieces, of_pieces.T)
        return joined, self._amounts(row, amounts)

    def words(self, batch: SegmentBatch) -> tuple[Tensor, Tensor]:
        """Returns the features of loops and registers [B,56], and of pieces [B,N,16]."""
        shapes = Shapes.of(batch)
        vectors = VectorShapes.of(batch, shapes)
        every = VectorShapes(*(rows_of(tensor, batch.segment) for tensor in vectors))
        row, _, pieces, _ = self.cuts(every, batch.config)
        whole = rows_of(_whole(shapes), batch.segment)
        cut = (pieces @ self.cut_words.T).unflatten(0, (len(row), -1))
        nodes = cut + whole @ self.whole_words.T
        return row @ torch.cat(self._words()).T, nodes

    def cuts(self, shapes: VectorShapes, config: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Returns the features of rows [B,73], their bounds plus 1 [B,24], the features of each
        node's piece of both tiles [B*N,18], and the logarithms of amounts in one step, and of 1
        [B,5,N]."""
        parts = torch.addmm(self.constant, config, self.of_tile).clamp(1.0, _UNLIMITED)
        numerators, denominators, numbers, bounds = parts.split(PARTS, -1)
        ratios = numerators / denominators
        rounded = torch.ceil(ratios)
        is_whole = (rounded == ratios).to(config.dtype)
        logarithms = torch.log(torch.addmm(numbers, rounded, self.of_whole))
        pieces = _pieces(shapes, torch.addmm(self.cut_constant, logarithms, self.cut))
        # ONNX Runtime multiplies one large matrix much faster than a small one for each row.
        flat = pieces @ self.logarithms_of
        of_nodes = flat.view(-1, shapes.logarithms.shape[-1], flat.shape[-1])
        nodes = of_nodes.mT + shapes.logarithms
        amounts, read, work = nodes.split(_LOGARITHMS, 1)
        row = [logarithms, is_whole, torch.logsumexp(read, -1), work.amax(-1)]
        # A kernel without inputs reads nothing, and has one step.
        return torch.relu(torch.cat(row, -1)), bounds, pieces, amounts

    def _words(self) -> list[Tensor]:
        return [self.get_buffer(name) for name in self.row_words]

    def _per_row(self, row: Tensor, bounds: Tensor) -> Tensor:
        """Returns what the bounds, the loops and the registers add to all nodes: [B,H]."""
        weights = [one.weight @ words for one, words in zip(self.first, self._words(), strict=True)]
        biases = [one.bias for one in self.first]
        hidden = torch.relu(F.linear(row, torch.cat(weights), torch.cat(biases)))
        standard = self.standardise.of_logarithms(torch.log(bounds))
        return torch.addmm(self.last(hidden), standard, self.bounds.weight.T)

    def _amounts(self, row: Tensor, logarithms: Tensor) -> Tensor:
        """Returns for both levels the elements that all steps access at a node and the steps, and
        then 1: [B,5,N], as costs per element of the largest tensor of the kernel."""
        per_amount = torch.addmm(self.step, row, self.has_steps).unsqueeze(-1)
        return torch.exp((logarithms + per_amount).clamp(max=LARGEST + log(SCALE)))


def _pieces(shapes: VectorShapes, cut: Tensor) -> Tensor:
    """Maps what cuts dimensions [B,15] to features of nodes [B*N,18].

    These are by level how much shorter the piece is than the tensor along each dimension, how much
    shorter the run of contiguous elements is along the two dimensions after the minor-most one, all
    in logarithms, and the elements that vectors of the minor-most dimension fill.
    """
    lacks = torch.relu(cut.unsqueeze(1) @ shapes.lacks)
    minor, following, others, vector, *is_cut = rows_apart(lacks, sum(LACKS)).split(LACKS, 1)
    (by_minor, by_next) = is_cut
    runs = torch.minimum(following + by_minor + by_next, shapes.following)
    filled = torch.exp(shapes.vectors - vector)
    return torch.cat([minor, following, others, runs, filled], 1).mT.flatten(0, 1)


def _whole(shapes: Shapes) -> Tensor:
    """Returns the logarithms of the dimensions and of the elements of tensors: [S,N,7]."""
    return torch.cat([shapes.whole, shapes.total.unsqueeze(-1)], -1)


def _constants() -> dict[str, Tensor]:
    """Returns the matrices that select columns, and other numbers that have nothing to train."""
    (cut, cut_constant) = cut_matrix()
    of_steps = torch.tensor([[1.0, 1, 0, 0, 0], [0, 0, 1, 1, 0]])
    elements_and_steps = [log(SCALE), STEP + log(SCALE)]
    return (
        row_matrices()
        | _piece_matrices()
        | {
            "cut": cut,
            "cut_constant": cut_constant,
            "has_steps": step_words().T @ of_steps,
            "step": torch.tensor([*elements_and_steps * LEVELS, 0.0]),
        }
    )


def _piece_matrices() -> dict[str, Tensor]:
    """Returns what maps the features of a piece [18] and those of a whole tensor [7] to the
    features of ``TilePart`` at both levels, and a piece to the logarithms of a node."""
    features = torch.eye(MINOR + NEXT + OTHERS + NEXT + MINOR)
    shorter, runs, filled = features.split([MINOR + NEXT + OTHERS, NEXT, MINOR])
    *dimensions, total = torch.eye(RANK + 1)
    of_piece, of_whole = piece_words().split([PIECES, 2], 1)
    # A length is that of the whole tensor less what the piece lacks.
    uncut = torch.stack([*dimensions, sum(dimensions[:3]), torch.zeros_like(total)])
    whole_words = of_piece @ uncut + of_whole @ torch.stack([total, dimensions[0]])
    lacks = []
    words = []
    for level in range(LEVELS):
        lack = shorter[level::LEVELS]
        run = lack[0] + runs[level::LEVELS].sum(0)
        words.append(of_piece @ torch.stack([*-lack, -run, filled[level]]))
        lacks.append(lack.sum(0))
    (workgroup, vector) = lacks
    none = torch.zeros_like(workgroup)
    amounts = [-workgroup, none, -vector, none, none]
    read = [-workgroup, -vector]
    return {
        "cut_words": torch.cat(words),
        "whole_words": torch.cat([whole_words] * LEVELS),
        "logarithms_of": torch.stack([*amounts, *read, *lacks, *lacks], 1),
    }
