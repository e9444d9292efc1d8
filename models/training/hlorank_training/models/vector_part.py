"""The part of a model for tiles of two levels: the tile of a workgroup, cut into vectors."""

from math import log

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hlorank_training.models.graph_layers import Standardise, rows_of
from hlorank_training.models.segment_batch import SegmentBatch
from hlorank_training.models.tile_part import (
    LARGEST,
    PIECES,
    SCALE,
    STEP,
    TILE_FEATURES,
    VECTOR,
    piece_words,
)
from hlorank_training.models.tile_shapes import CUTS, RANK
from hlorank_training.models.vector_shapes import LEVELS, VectorShapes
from hlorank_training.models.vector_words import (
    INPUT,
    OUTPUT,
    STEPS,
    cover,
    divided_lengths,
    row_words,
)

AMOUNTS = 2 * LEVELS
_REDUCTION = slice(6, 7)
_REDUCTION_PRODUCT = 7


class VectorTilePart(nn.Module):
    """Features of both levels' loops, and of the pieces that they cut of every node.

    Output bounds are the tile of a workgroup and input bounds are its vectors, both most minor
    dimension first. Kernel bounds are the steps of reductions that are unrolled with a vector. Both
    levels are computed together, since the number of operations counts as in ``TilePart``.
    """

    Tensors = VectorShapes

    def __init__(self, hidden: int):
        super().__init__()
        words = row_words(SCALE)
        self.words_of = [len(some) for some in words]
        self.standardise = Standardise(TILE_FEATURES)
        self.bounds = nn.Linear(TILE_FEATURES, hidden, bias=False)
        self.first = nn.ModuleList(nn.Linear(count, hidden) for count in self.words_of)
        self.last = nn.Linear(len(words) * hidden, hidden)
        self.pieces = nn.Linear(LEVELS * PIECES, hidden)
        constants = _constants() | {"row_words": torch.cat(words), "piece_words": piece_words()}
        for name, constant in constants.items():
            self.register_buffer(name, constant, persistent=False)

    def fit(self, tiles: Tensor) -> None:
        """Computes the statistics of the standardization from raw tiles [n,24]."""
        self.standardise.fit(tiles)

    def of_segments(self, batch: SegmentBatch) -> tuple[VectorShapes, Tensor]:
        """Returns what depends on the segments alone, and what is added to their nodes [S,N,H]."""
        shapes = VectorShapes.of(batch)
        _, of_whole = self._piece_weights()
        return shapes, _whole(shapes) @ of_whole.sum(1).T + self.pieces.bias

    def forward(self, shapes: VectorShapes, nodes: Tensor, config: Tensor) -> tuple[Tensor, Tensor]:
        """Joins ``nodes`` [B,N,H] and the tiles [B,24] to [B*N,H]; adds amounts and 1,
        [B,5,N], which are 0 at padding."""
        row, pieces, piece = self.cuts(shapes, config)
        of_piece, _ = self._piece_weights()
        given = (self._per_row(config, row).unsqueeze(1) + nodes).flatten(0, 1)
        joined = torch.addmm(given, pieces.flatten(0, 1), of_piece.flatten(1).T)
        return joined, self._amounts(row, shapes.largest, piece) * shapes.is_node

    def words(self, batch: SegmentBatch) -> tuple[Tensor, Tensor]:
        """Returns the features of loops and registers [B,56], and of pieces [B,N,16]."""
        shapes = VectorShapes.of(batch)
        every = VectorShapes(*(rows_of(tensor, batch.segment) for tensor in shapes))
        row, pieces, _ = self.cuts(every, batch.config)
        whole = _whole(every).unsqueeze(2).expand(-1, -1, LEVELS, -1)
        nodes = torch.cat([pieces.unflatten(-1, (LEVELS, -1)), whole], -1) @ self.piece_words.T
        return row @ self.row_words.T, nodes.flatten(2)

    def cuts(self, shapes: VectorShapes, config: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Returns the features from which the words of a row are sums [B,75], features of each
        node's piece of both tiles [B,N,16], and the logarithms of the pieces' elements [B,2,N].

        Those of a piece are the logarithms of its dimensions and of its contiguous elements, and
        the elements that vectors of its minor-most dimension fill.
        """
        least = config.clamp(min=1)
        logarithms = torch.log(least)
        has_reduction = config[:, _REDUCTION].clamp(max=1)
        cut = torch.addmm(has_reduction @ self.cut_by_flag, logarithms, self.cut_by_logarithms)
        lengths = cut.unsqueeze(1) @ shapes.lengths
        pieces = torch.minimum(lengths + shapes.uncut, shapes.whole)
        pieces = pieces.view(-1, RANK, LEVELS, shapes.total.shape[-1])
        piece = pieces.sum(1)
        row = torch.cat([logarithms, *self._row(shapes, least, piece)], -1)
        features = torch.cat([pieces, *_runs(pieces, shapes.nearly_whole)], 1)
        return row, features.permute(0, 3, 2, 1).flatten(2), piece

    def _per_row(self, config: Tensor, row: Tensor) -> Tensor:
        """Returns what the bounds, the loops and the registers add to all nodes: [B,H]."""
        parts = self.row_words.split(self.words_of)
        weights = [one.weight @ words for one, words in zip(self.first, parts, strict=True)]
        biases = [one.bias for one in self.first]
        hidden = torch.relu(F.linear(row, torch.cat(weights), torch.cat(biases)))
        standard = self.standardise.of_logarithms(torch.log1p(config))
        return torch.addmm(self.last(hidden), standard, self.bounds.weight.T)

    def _row(self, shapes: VectorShapes, least: Tensor, piece: Tensor) -> tuple[Tensor, ...]:
        """Returns how vectors cover the tile [B,8], the work of both loops [B,2] each, and flags
        [B,37]."""
        logarithms, flags = cover(least)
        lengths = least @ self.divided_lengths
        shrunk = shapes.total - piece
        tiles = (shrunk * shapes.at_output).sum(-1)
        steps = (shrunk * shapes.at_inputs).amax(-1)
        read = torch.relu(torch.logsumexp(piece + shapes.no_inputs, -1))
        flags = torch.cat([lengths == torch.floor(lengths), flags], -1).to(piece.dtype)
        return logarithms, tiles, steps, read, flags

    def _piece_weights(self) -> tuple[Tensor, Tensor]:
        """Returns the weights of a piece's features at both levels [H,2,8], and of the two features
        of whole tensors [H,2,2]."""
        weights = self.pieces.weight.unflatten(1, (LEVELS, PIECES)) @ self.piece_words / SCALE
        return weights.split([PIECES, 2], -1)

    def _amounts(self, row: Tensor, largest: Tensor, piece: Tensor) -> Tensor:
        """Returns for both levels the elements that all steps access at a node and the steps, and
        then 1: [B,5,N], as costs per element of the largest tensor of the kernel."""
        per_step = row[:, STEPS] - largest
        per_amount = torch.addmm(self.step, per_step, self.has_steps).unsqueeze(-1)
        return torch.exp((self.amounts_of @ piece + per_amount).clamp(max=LARGEST + log(SCALE)))


def _runs(pieces: Tensor, nearly_whole: Tensor) -> tuple[Tensor, Tensor]:
    """Maps the lengths of pieces [B,6,2,N] to their contiguous elements, and to the elements that
    vectors of the minor-most dimension fill: [B,1,2,N] each."""
    two, third, _ = pieces.split([2, 1, RANK - 3], 1)
    minor, next_minor = two.split(1, 1)
    first, second = (two > nearly_whole).to(pieces.dtype).split(1, 1)
    filled = torch.exp(minor.clamp(max=log(VECTOR)))
    return minor + (next_minor + third * second) * first, filled


def _whole(shapes: VectorShapes) -> Tensor:
    """Returns logarithms of the elements and the minor-most dimensions of tensors: [S,N,2]."""
    nodes = shapes.total.shape[-1]
    return torch.cat([shapes.total, shapes.whole[..., :nodes]], 1).mT


def _constants() -> dict[str, Tensor]:
    """Returns the matrices that select columns, and other numbers that have nothing to train."""
    columns = torch.eye(TILE_FEATURES)
    none = torch.zeros(TILE_FEATURES, CUTS - RANK)
    reduction = F.pad(columns[:, [_REDUCTION_PRODUCT]], (0, 1))
    # A workgroup computes whole reductions.
    logarithms = [columns[:, OUTPUT], none, columns[:, INPUT], reduction]
    elements_and_steps = [log(SCALE), STEP + log(SCALE)]
    return {
        "cut_by_logarithms": torch.cat(logarithms, -1),
        "cut_by_flag": torch.eye(LEVELS * CUTS)[-1:],
        "divided_lengths": divided_lengths(),
        "amounts_of": torch.tensor([[1.0, 0], [0, 0], [0, 1], [0, 0], [0, 0]]),
        "has_steps": torch.tensor([[1.0, 1, 0, 0, 0], [0, 0, 1, 1, 0]]),
        "step": torch.tensor([*elements_and_steps * LEVELS, 0.0]),
    }
