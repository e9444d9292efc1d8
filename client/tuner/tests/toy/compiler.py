"""Tiles of a matrix product, whose run times are made up."""

from itertools import product
from pathlib import Path

import numpy as np

from hlorank import Graph, Tiles
from hlorank_tune import Compiler, InOrder, Outcome, Subject
from hlorank_tune.measure.rounds import Protocol

TEXT = """HloModule product

ENTRY main {{
  a = f32[{rows},32] parameter(0)
  b = f32[32,{columns}] parameter(1)
  ROOT c = f32[{rows},{columns}] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}
"""


class Product(Subject[tuple[int, int]]):
    """Candidates are the rows and columns of a tile."""

    def __init__(self, rows: int, columns: int):
        self.sizes = rows, columns
        self.reference = self.default = rows, columns
        self.graph = Graph.from_hlo_text(TEXT.format(rows=rows, columns=columns), task="tile")

    def strategy(self, settings, random, batch, steps, start):
        tiles = list(product(*map(divisors, self.sizes)))
        return InOrder([tiles[place] for place in random.permutation(len(tiles))], batch)

    def configurations(self, candidates):
        tiles = [tile[::-1] for tile in candidates]
        return Tiles(
            kernel_bounds=[[32]] * len(tiles),
            output_bounds=tiles,
            input_bounds=[(1, 1)] * len(tiles),
        )

    def key(self, candidate):
        return candidate

    def written(self, candidate):
        return {} if candidate == self.reference else {"tile": list(candidate)}

    def read(self, written):
        return tuple(written["tile"]) if written else self.reference


class ToyCompiler(Compiler[tuple[int, int]]):
    """The fastest tile is square, and has 8 rows."""

    task = "tile"
    model = "tile-iree-cpu"
    search = confirm = Protocol()

    def __init__(self, rows: int, columns: int):
        self.program = f"product-{rows}x{columns}"
        self.whole = Product(rows, columns)

    def identity(self):
        return {"identity": self.program}

    def target(self):
        return "a toy"

    def measure(self, subject, candidates, protocol, seconds, report):
        report("measuring")
        own = self.nanoseconds(subject.reference)
        return [Outcome("measured", self.nanoseconds(tile), own, 0.01) for tile in candidates]

    def nanoseconds(self, tile):
        return round(1000 * (1 + sum(abs(np.log2(size / 8)) for size in tile)))

    def write(self, run, folder: Path):
        if run.best:
            (folder / "tile.txt").write_text(str(run.winner.candidate["tile"]))


def divisors(size: int) -> list[int]:
    return [number for number in range(1, size + 1) if size % number == 0]
