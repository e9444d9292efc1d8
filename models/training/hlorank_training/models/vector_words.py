"""What a row of a tile of two levels says of its loops, and of how vectors fill registers."""

import torch
from torch import Tensor

from hlorank_training.models.tile_part import TILE_FEATURES, VECTOR
from hlorank_training.models.tile_shapes import RANK

OUTPUT = slice(8, 14)
INPUT = slice(16, 22)
"""Columns of a tile: bounds of a workgroup's tile and of a vector. Those of a reduction are first,
and each is followed by its sum and product."""
_DIVISORS = 5
_LOOP_LENGTHS = ((8, 9, None, 15), (16, 17, 7, 23))
"""Columns by level: the two minor-most dimensions, and the products of a reduction and of the
output. A workgroup computes whole reductions."""
_COVER = RANK + 2
_WORK = 6
_DIVISIBLE = (2 * _DIVISORS, 3 * _DIVISORS)
"""Lengths of a loop by divisors: the two minor-most dimensions, and a reduction if there is any."""
STEPS = slice(TILE_FEATURES + _COVER + 2, TILE_FEATURES + _COVER + 4)
"""Features that are the logarithms of the steps of both levels."""
_FEATURES = TILE_FEATURES + _COVER + _WORK + sum(_DIVISIBLE) + 2 * RANK
"""Features of a row, from which words are sums."""


def cover(least: Tensor) -> tuple[Tensor, Tensor]:
    """Returns how vectors cover a workgroup's tile; bounds in ``least`` [B,24] are at least 1.

    Logarithms [B,8] are of the steps of every dimension, of the registers that the minor-most one
    fills, and of these with the next dimension. Flags [B,12] are the dimensions of the tile that
    have a remainder, and those in which a vector is a scalar.
    """
    tile = least[:, OUTPUT]
    vector = least[:, INPUT]
    steps = torch.ceil(tile / vector)
    registers = torch.ceil(vector[:, :1] / VECTOR)
    numbers = torch.cat([steps, registers, registers + vector[:, 1:2]], -1)
    return torch.log(numbers), torch.cat([steps * vector > tile, vector == 1], -1)


def divided_lengths() -> Tensor:
    """Divides the lengths of both levels' loops, but for the output's, by 2 to 32: [24,25]."""
    lengths = [c for level in _LOOP_LENGTHS for c in level[:3] if c is not None]
    powers = 2.0 ** -torch.arange(1, _DIVISORS + 1)
    return torch.kron(torch.eye(TILE_FEATURES)[:, lengths], powers)


def row_words(scale: float) -> list[Tensor]:
    """Maps features of a row to the inputs of a first layer for each level's loop, and to those of
    one for registers: [18,75], [23,75], [15,75].

    Features are the logarithms of the tile's 24 columns, those of ``cover``, those of the tiles,
    the steps and what a step reads, each by level, whether the lengths are divisible, and the flags
    of ``cover``. Sums are folded into the weights. Lengths count ``1 / scale`` times.
    """
    features = torch.eye(_FEATURES)
    sizes = (TILE_FEATURES, RANK, 2, _WORK, sum(_DIVISIBLE), RANK, RANK)
    bounds, steps, registers, work, divisible, remainder, scalar = features.split(sizes)
    none = torch.zeros(_FEATURES)
    words = []
    for level, columns in enumerate(_LOOP_LENGTHS):
        lengths = [none if column is None else bounds[column] for column in columns]
        _, _, reduction, output = lengths
        logarithms = torch.stack([*lengths, reduction + output, *work[level::2]])
        words.append(torch.cat([logarithms / scale, divisible.split(_DIVISIBLE)[level]]))
    of_registers = _register_words(bounds, steps, registers)
    return [*words, torch.stack([*of_registers, *remainder[:3], *scalar[:2]])]


def _register_words(bounds: Tensor, steps: Tensor, registers: Tensor) -> list[Tensor]:
    """Returns the sizes of vectors, the registers that they fill, the elements that fill none, the
    loads of a multiplication, and the steps."""
    tile = bounds[OUTPUT]
    vector = bounds[INPUT]
    minor, next_minor, *_ = vector
    rows = vector[1:].sum(0)
    unrolled = bounds[:RANK].sum(0)
    (lanes, lanes_and_next) = registers
    filled = lanes + rows
    padded = (steps + vector - tile).sum(0)
    reuse = lanes + next_minor - lanes_and_next
    sizes = [minor, next_minor, unrolled, filled, filled + unrolled, rows]
    return [*sizes, lanes - minor, padded, reuse, steps.sum(0)]
