"""A small compiler of loop nests, which knows nothing of hlorank.

A program is a few stages over square matrices, each of which sums products of its inputs. A
schedule gives every stage an order of its loops, tiles, and an unrolled innermost loop. The C
compiler ``cc`` translates both to machine code.
"""

import ctypes
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

KINDS = {
    "product": "i,j i,k k,j",
    "product with a transposed matrix": "i,j i,k j,k",
    "stencil": "i,j ik,jl k,l",
    "transpose": "i,j j,i",
    "elementwise": "i,j i,j i,j",
}
"""Rows and columns of the output and the inputs: a stencil is o[i,j] += a[i+k,j+l] * b[k,l]."""
INPUTS, WINDOW = 2, 3
"""Number of matrices that a program reads, and size of a stencil."""
TILES, UNROLLS = (8, 16, 32, 64), (1, 2, 4, 8)
ROUNDS = 5
CC = ("cc", "-O2", "-ftree-vectorize", "-fvect-cost-model=dynamic", "-march=native")


@dataclass(frozen=True)
class Stage:
    """A nest of loops that computes one matrix."""

    size: int
    kind: str
    inputs: tuple[int, ...]
    """Matrices that the program reads, or results of earlier stages, which are numbered next."""

    @property
    def accesses(self) -> list[list[str]]:
        """The loops in rows and columns of the output and the inputs."""
        return [access.split(",") for access in KINDS[self.kind].split()]

    @property
    def extents(self) -> dict[str, int]:
        """The number of iterations of every loop."""
        loops = dict.fromkeys(KINDS[self.kind].replace(",", "").replace(" ", ""), self.size)
        return loops | dict.fromkeys("kl" if self.kind == "stencil" else "", WINDOW)


@dataclass(frozen=True)
class Schedule:
    """How a stage is computed."""

    order: str
    """Loops from the outermost to the innermost."""
    tiles: dict[str, int]
    """Iterations at a time of tiled loops; the loops over tiles are outside, in this order."""
    unroll: int


def program(seed: int) -> list[Stage]:
    """Draws a program of two to five stages, whose first is a product."""
    draw = np.random.default_rng(seed)
    size, stages = int(draw.integers(8, 21)) * 8, []
    for number in range(draw.integers(2, 6)):
        kind = str(draw.choice(list(KINDS) if stages else list(KINDS)[:2]))
        others = draw.integers(INPUTS + number, size=KINDS[kind].count(" ") - 1).tolist()
        stages.append(Stage(size, kind, (INPUTS + number - 1, *others)))
    return stages


def schedules(stages: list[Stage], count: int, seed: int) -> list[list[Schedule]]:
    """Draws schedules of all stages; the first is that of a compiler that does not optimize."""
    draw = np.random.default_rng(seed)
    plain = [Schedule("".join(stage.extents), {}, 1) for stage in stages]
    return [plain, *([_drawn(stage, draw) for stage in stages] for _ in range(count - 1))]


def _drawn(stage: Stage, draw: np.random.Generator) -> Schedule:
    order = "".join(draw.permutation(list(stage.extents)))
    tiled = [loop for loop in order if stage.extents[loop] > WINDOW and draw.random() < 0.5]
    tiles = {loop: int(draw.choice(TILES)) for loop in tiled}
    return Schedule(order, tiles, int(draw.choice(UNROLLS)))


def code(stages: list[Stage], configs: list[list[Schedule]]) -> str:
    """Generates a C function for every configuration of a program."""
    parts, bytes_of = ["#include <string.h>"], 4 * (stages[0].size + WINDOW) ** 2
    for config, chosen in enumerate(configs):
        calls = []
        for number, (stage, schedule) in enumerate(zip(stages, chosen, strict=True)):
            name, output = f"stage{number}_{config}", f"m[{INPUTS + number}]"
            parts.append(_nest(stage, schedule, name))
            a, b = stage.inputs[0], stage.inputs[-1]
            calls += [f"memset({output}, 0, {bytes_of});", f"{name}({output}, m[{a}], m[{b}]);"]
        parts.append(f"void run{config}(float **m) {{ {' '.join(calls)} }}")
    return "\n".join(parts)


def _nest(stage: Stage, schedule: Schedule, name: str) -> str:
    lines = [f"static void {name}(float *restrict o, const float *a, const float *b) {{"]
    for loop, tile in schedule.tiles.items():
        lines.append(f"for (int {loop}0 = 0; {loop}0 < {stage.extents[loop]}; {loop}0 += {tile})")
    for loop in schedule.order:
        start, end = "0", str(stage.extents[loop])
        if tile := schedule.tiles.get(loop):
            start, end = f"{loop}0", f"({loop}0 + {tile} < {end} ? {loop}0 + {tile} : {end})"
        if loop == schedule.order[-1]:
            lines.append(f"#pragma GCC unroll {schedule.unroll}")
        lines.append(f"for (int {loop} = {start}; {loop} < {end}; {loop}++)")
    pitch = stage.size + WINDOW
    at = [f"[({'+'.join(row)}) * {pitch} + {'+'.join(column)}]" for row, column in stage.accesses]
    read = " * ".join(array + place for array, place in zip("ab", at[1:], strict=False))
    return "\n".join([*lines, f"o{at[0]} += {read};", "}"])


def measure(stages: list[Stage], configs: list[list[Schedule]]) -> np.ndarray:
    """Returns nanoseconds of processor time [2, configs]: two passes, the least of some rounds.

    Raises:
        RuntimeError: if a configuration computes something else than the first one.
    """
    side = stages[0].size + WINDOW
    drawn = np.random.default_rng(0).normal(0, side**-0.5, (INPUTS + len(stages), side, side))
    matrices = drawn.astype(np.float32)
    pointers = (ctypes.c_void_p * len(matrices))(*(matrix.ctypes.data for matrix in matrices))
    times, expected = np.zeros((2, ROUNDS, len(configs)), np.int64), None
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "nests.c"), Path(folder, "nests.so")
        source.write_text(code(stages, configs))
        subprocess.run([*CC, "-shared", "-fPIC", "-o", library, source], check=True)
        loaded = ctypes.CDLL(str(library))
        for place in np.ndindex(times.shape):
            start = time.process_time_ns()
            loaded[f"run{place[-1]}"](pointers)
            times[place] = time.process_time_ns() - start
            expected = matrices.copy() if expected is None else expected
            if not np.allclose(matrices, expected, 1e-3, 1e-5):
                raise RuntimeError(f"configuration {place[-1]} computes something else")
    return times.min(axis=1)
