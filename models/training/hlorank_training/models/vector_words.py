"""What a row of a tile of two levels says of its loops, and of how vectors fill registers."""

from math import log
from typing import NamedTuple

import torch
from torch import Tensor

from hlorank_training.models.segment_model import TILE_FEATURES
from hlorank_training.models.tile_part import RANK, VECTOR

LEVELS = 2
_REDUCTION_SUM = 6
_REDUCTION_PRODUCT = 7
_OUTPUT = slice(8, 14)
_INPUT = slice(16, 22)
"""Columns of a tile: bounds of a workgroup's tile and of a vector. Those of a reduction are first,
and each is followed by its sum and product."""
_DIVISORS = 5
_LOOP_LENGTHS = ((8, 9, None, 15), (16, 17, 7, 23))
"""Columns by level: the two minor-most dimensions, and the products of a reduction and of the
output. A workgroup computes whole reductions."""
_DIVISIBLE = (2 * _DIVISORS, 3 * _DIVISORS)
"""Lengths of a loop by divisors: the two minor-most dimensions, and a reduction if there is any."""
_SCALARS = 2
_RATIOS = (sum(_DIVISIBLE), _SCALARS, 1, RANK, 1)
"""Lengths of loops over divisors, 1 over a vector's minor-most dimensions, 1 over 1, a tile over
its vector, and a vector over a register."""
_NUMBERS = (TILE_FEATURES, RANK, 2)
"""The bounds, the steps of each dimension, and the registers that the minor-most one fills, alone
and plus the next dimension. The sum of the reduction's bounds is no feature; 1 with a reduction and
2 without stands in its place, as ONNX Runtime rounds the logarithms of rows alike if their length
is a multiple of 8."""
RATIOS = sum(_RATIOS)
NUMBERS = sum(_NUMBERS)
PARTS = (RATIOS, RATIOS, NUMBERS, TILE_FEATURES)
"""What is computed from a tile: numerators, denominators, numbers, and its bounds plus 1."""
FEATURES = NUMBERS + RATIOS + 3 * LEVELS
"""Features of a row, from which words are sums: logarithms of its numbers, which ratios are whole,
and at each level the logarithms of what a step reads, of the tiles, and of the steps."""


def row_matrices() -> dict[str, Tensor]:
    """Returns what maps a tile to ``PARTS``: ``of_tile`` [24,126] and a ``constant`` [126] that is
    added, after which all that is below 1 becomes 1, as missing bounds are 0; and ``of_whole``
    [35,32], what the ratios, rounded up, add to the numbers.

    These are the steps of each dimension and the registers, less the 1 that the numbers have
    already, and the registers once more for the next dimension.
    """
    bounds = torch.eye(TILE_FEATURES)
    tile = bounds[:, _OUTPUT]
    vector = bounds[:, _INPUT]
    lengths = [c for level in _LOOP_LENGTHS for c in level[:3] if c is not None]
    lengths_by_divisor = bounds[:, lengths].repeat_interleave(_DIVISORS, 1)
    divisors = (2.0 ** torch.arange(1, _DIVISORS + 1)).repeat(len(lengths))
    sums = torch.diag(bounds[_REDUCTION_SUM])
    parts = (
        (lengths_by_divisor, 0),
        (_nothing(_SCALARS + 1), 1),
        (tile, 0),
        (vector[:, :1], 0),
        (_nothing(len(divisors)), divisors),
        (vector[:, :_SCALARS], 0),
        (_nothing(1), 1),
        (vector, 0),
        (_nothing(1), VECTOR),
        (bounds - 2 * sums, 2 * sums.sum(0)),
        (_nothing(RANK + 1), 1),
        (vector[:, 1:2], 0),
        (bounds, 1),
    )
    constants = [torch.as_tensor(c).float().expand(matrix.shape[1]) for matrix, c in parts]
    *_, one, steps, registers = torch.eye(RATIOS).split(_RATIOS, 1)
    others = torch.zeros(RATIOS, TILE_FEATURES)
    return {
        "of_tile": torch.cat([matrix for matrix, _ in parts], 1),
        "constant": torch.cat(constants),
        "of_whole": torch.cat([others, steps - one, registers - one, registers], 1),
    }


def _nothing(columns: int) -> Tensor:
    return torch.zeros(TILE_FEATURES, columns)


def cut_matrix() -> tuple[Tensor, Tensor]:
    """Maps logarithms of numbers to what cuts dimensions [32,15], and adds [15].

    These are the output's bounds of a workgroup, which computes whole reductions, those of a
    vector with the length and the presence of a reduction, and 1.
    """
    bounds, *_ = torch.eye(NUMBERS).split(_NUMBERS, 1)
    no_reduction = bounds[:, [_REDUCTION_SUM]] / log(2)
    reduction = [bounds[:, [_REDUCTION_PRODUCT]], -no_reduction]
    none = torch.zeros(NUMBERS, 1)
    matrix = torch.cat([bounds[:, _OUTPUT], bounds[:, _INPUT], *reduction, none], 1)
    return matrix, torch.tensor([0.0] * (matrix.shape[1] - 2) + [1, 1])


class _Features(NamedTuple):
    """The features of a row by kind."""

    bounds: Tensor
    steps: Tensor
    registers: Tensor
    divisible: Tensor
    scalar: Tensor
    one: Tensor
    whole_steps: Tensor
    whole_registers: Tensor
    read: Tensor
    tiles: Tensor
    loop: Tensor


def _features() -> _Features:
    sizes = (*_NUMBERS, *_RATIOS, *[LEVELS] * 3)
    return _Features(*torch.eye(FEATURES).split(sizes))


def row_words(scale: float) -> list[Tensor]:
    """Maps features of a row to the inputs of a first layer for each level's loop, and to those of
    one for registers: [18,73], [23,73], [15,73].

    Sums are folded into the weights. Lengths count ``1 / scale`` times.
    """
    features = _features()
    none = torch.zeros(FEATURES)
    divisible = features.divisible.split(_DIVISIBLE)
    words = []
    for level, columns in enumerate(_LOOP_LENGTHS):
        lengths = [none if column is None else features.bounds[column] for column in columns]
        _, _, reduction, output = lengths
        work = [kind[level] for kind in (features.tiles, features.loop, features.read)]
        logarithms = torch.stack([*lengths, reduction + output, *work])
        words.append(torch.cat([logarithms / scale, divisible[level]]))
    remainders = features.one - features.whole_steps
    of_registers = _register_words(features.bounds, features.steps, features.registers)
    return [*words, torch.stack([*of_registers, *remainders[:3], *features.scalar])]


def _register_words(bounds: Tensor, steps: Tensor, registers: Tensor) -> list[Tensor]:
    """Returns the sizes of vectors, the registers that they fill, the elements that fill none, the
    loads of a multiplication, and the steps."""
    tile = bounds[_OUTPUT]
    vector = bounds[_INPUT]
    minor, next_minor, *_ = vector
    rows = vector[1:].sum(0)
    unrolled = bounds[:RANK].sum(0)
    (lanes, lanes_and_next) = registers
    filled = lanes + rows
    padded = (steps + vector - tile).sum(0)
    reuse = lanes + next_minor - lanes_and_next
    sizes = [minor, next_minor, unrolled, filled, filled + unrolled, rows]
    return [*sizes, lanes - minor, padded, reuse, steps.sum(0)]


def step_words() -> Tensor:
    """Returns the features of a row that are the logarithms of both levels' steps: [2,73]."""
    return _features().loop
