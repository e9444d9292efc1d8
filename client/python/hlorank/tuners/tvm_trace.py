"""Columns of a trace of TVM's schedules, which are cheap to read: no program is lowered.

The columns are the same for all programs. A column that a trace has no value for is 1 if it is a
number of iterations, and ``_ABSENT`` otherwise.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from math import inf, prod
from typing import Any, TypeVar

import numpy as np
from tvm.ir import IRModule
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import Instruction, LoopRV, SBlockRV, Trace
from tvm.tirx import IterVar

from hlorank import Result
from hlorank.tuners.proposals import result_of

T = TypeVar("T")

LEVELS = 4
"""Levels of a spatial axis in multi-level tiling on a processor; a summed axis has two."""
AXES = 3
"""Spatial axes with columns of their own, from the innermost one."""
SUMS = 2
"""Summed axes with columns of their own, likewise."""
SPLITS = 2
"""Other splits, such as those of a factored reduction."""
LOCATIONS = 6
_ABSENT = -3
"""Below -2, which stands for inlining."""

FEATURE_SET = "tvm-trace-2"
"""The name of the columns; another one if they change their meaning."""

Columns = np.ndarray
"""f32 [columns]: what a candidate's trace decides"""

COLUMNS = (
    *(f"axis{axis}_level{level}" for axis in range(AXES) for level in range(LEVELS)),
    *(f"axes_level{level}" for level in range(LEVELS)),
    *(f"sum{axis}_level{level}" for axis in range(SUMS) for level in range(2)),
    "sums_level0",
    "sums_level1",
    "register_tile",
    "inner_tile",
    "block_tile",
    "spatial_extent",
    "summed_extent",
    "innermost_extent",
    "spatial_axes",
    "written_at",
    "written_blocks",
    *(f"split{split}_{part}" for split in range(SPLITS) for part in ("outer", "inner")),
    *(f"split{split}_factored" for split in range(SPLITS)),
    *(f"split{split}_block" for split in range(SPLITS)),
    "splits",
    "choice0",
    "choice1",
    *(f"location{number}" for number in range(LOCATIONS)),
    "locations",
)
"""The names of the columns, in order."""


@dataclass
class Tiles:
    """The levels of the axes of one block."""

    spatial: list[list[int]] = field(default_factory=list)
    summed: list[list[int]] = field(default_factory=list)

    @property
    def extent(self) -> int:
        """Number of iterations."""
        return prod(map(prod, self.spatial + self.summed))


@dataclass
class Reading:
    """What was decided, in the order of instructions: that of decisions changes with each copy."""

    sampled: list[tuple[Instruction, list[int]]] = field(default_factory=list)
    """Each instruction that decides, and what it decided: the lists are those below."""
    blocks: list[Tiles] = field(default_factory=list)
    splits: list[list[int]] = field(default_factory=list)
    choices: list[list[int]] = field(default_factory=list)
    locations: list[list[int]] = field(default_factory=list)
    written_at: int = 0
    """After how many loops of a tiled block its result is written; 0 if there is no copy."""
    written_blocks: int = 0
    factored: list[int] = field(default_factory=list)
    """Which part of its split each factored loop is."""
    factored_blocks: list[int] = field(default_factory=list)
    """The place of the block of each factored loop among those of the program, from 1."""
    program: list[SBlockRV] = field(default_factory=list)
    """The blocks of the program."""
    split_block: SBlockRV | None = None
    """The block whose loops were asked for last."""
    parts: list[LoopRV] = field(default_factory=list)
    """The loops of the last split."""
    loops: list[LoopRV] = field(default_factory=list)
    """The loops of the last block that was tiled, in their order."""

    @classmethod
    def of(cls, trace: Trace) -> "Reading":
        """Reads a ``tvm.s_tir.schedule.Trace``, without its postprocessing."""
        read = cls()
        decisions = trace.decisions
        for instruction in trace.insts:
            kind = str(instruction.kind.name)
            if kind == "EnterPostproc":
                break
            read._add(kind, instruction, decisions)
        return read

    @property
    def tiled(self) -> Tiles:
        """The largest block that is tiled; one without axes if none is."""
        return max(self.blocks, key=lambda each: each.extent, default=Tiles())

    def _add(
        self, kind: str, instruction: Instruction, decisions: Mapping[Instruction, Any]
    ) -> None:
        match kind:
            case "SamplePerfectTile":
                factors = [int(factor) for factor in decisions[instruction]]
                self.sampled.append((instruction, factors))
                self._add_tile(factors)
            case "SampleCategorical" | "SampleComputeLocation":
                decided = [int(decisions[instruction])]
                self.sampled.append((instruction, decided))
                (self.choices if kind == "SampleCategorical" else self.locations).append(decided)
            case "GetSBlock":
                self.program += instruction.outputs
            case "GetLoops":
                self.split_block = instruction.inputs[0]
            case "Split":
                self.parts = list(instruction.outputs)
            case "Reorder":
                self.loops = list(instruction.inputs)
            case "RFactor":
                self.factored.append(_place(instruction.inputs[0], self.parts))
                self.factored_blocks.append(_place(self.split_block, self.program))
            case "ReverseComputeAt":
                self.written_blocks += 1
                self.written_at = _place(instruction.inputs[1], self.loops)

    def _add_tile(self, factors: list[int]) -> None:
        """Adds the factors of a loop: spatial axes of a block come before its summed ones."""
        last = self.blocks[-1] if self.blocks else None
        if len(factors) == LEVELS:
            if last is None or last.summed:
                self.blocks.append(last := Tiles())
            last.spatial.append(factors)
        elif last is not None and len(factors) == 2:
            last.summed.append(factors)
        else:
            self.splits.append(factors)


def columns_of(trace: Trace) -> np.ndarray:
    """Returns f32 [columns] of a ``tvm.s_tir.schedule.Trace``.

    A trace before and after postprocessing, and a simplified one as databases keep it, have equal
    columns.
    """
    read = Reading.of(trace)
    choices = [1 + choice for (choice,) in reversed(read.choices)]
    locations = [location for (location,) in read.locations]
    return np.array(
        [
            *_tile_columns(read.tiled),
            read.written_at,
            read.written_blocks,
            *_split_columns(read.splits),
            *_filled(read.factored, SPLITS, _ABSENT),
            *_filled(read.factored_blocks, SPLITS, _ABSENT),
            len(read.splits),
            *_filled(choices, 2, 1 + _ABSENT),
            *_filled(locations, LOCATIONS, _ABSENT),
            len(read.locations),
        ],
        np.float32,
    )


def results_of(run_seconds: Iterable[Sequence[float] | None]) -> list[Result]:
    """Returns the median of the times of each candidate, as TVM's own model takes it.

    A failure has no times, or 1e9 or 1e10 seconds. TVM does not say whether a candidate failed to
    compile or to run.
    """
    medians = (np.median([float(one) for one in times]) if times else inf for times in run_seconds)
    return [result_of(float(seconds), "crash") for seconds in medians]


def kind_of(module: IRModule) -> str:
    """Returns the axes of each block of a task, such as ``SSR`` for a product of matrices.

    S is a spatial axis, and R a summed one. Programs of one kind have alike traces.
    """
    schedule = Schedule(module)
    blocks = schedule.get_child_blocks(schedule.get_sblock("root"))
    axes = (schedule.get(block).iter_vars for block in blocks)
    return " ".join("".join(map(_letter, each)) for each in axes)


def _letter(axis: IterVar) -> str:
    return "S" if axis.iter_type == IterVar.DataPar else "R"


def _place(one: LoopRV | SBlockRV, others: list[LoopRV | SBlockRV]) -> int:
    """The place of a loop or a block among others, from 1; 0 if it is none of them."""
    places = (place for place, other in enumerate(others, 1) if one.same_as(other))
    return next(places, 0)


def _tile_columns(block: Tiles) -> list[int]:
    ones = [1] * LEVELS
    axes = _filled(block.spatial[::-1], AXES, ones)
    levels = [prod(level) for level in zip(*block.spatial, ones, strict=True)]
    summed = _filled(block.summed[::-1], SUMS, [1, 1])
    sums = [prod(level) for level in zip(*block.summed, [1, 1], strict=True)]
    return [
        *(factor for axis in axes for factor in axis),
        *levels,
        *(factor for axis in summed for factor in axis),
        *sums,
        levels[2] * levels[3],
        levels[3] * sums[1],
        levels[1] * levels[2] * levels[3] * sums[1],
        prod(levels),
        prod(sums),
        prod(axes[0]),
        len(block.spatial),
    ]


def _split_columns(splits: list[list[int]]) -> list[int]:
    """Outer and inner iterations; those between count as inner ones."""
    filled = _filled(splits, SPLITS, [1, 1])
    return [part for split in filled for part in (split[0], prod(split[1:]))]


def _filled(values: list[T], count: int, absent: T) -> list[T]:
    """The first values, and what stands for those that are missing."""
    return [value for value, _ in zip_longest(values[:count], range(count), fillvalue=absent)]
