"""Schedules of the Adams2019 autoscheduler, with its features of them.

The autoscheduler is a plugin in Halide's wheel. It returns the features of every stage that is not
an input: 39 of the schedule, and 287 that do not depend on it. It only prints which stage reads
which, to the C library's standard error.
"""

import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

import halide as hl
import numpy as np

from hlorank_training.measuring.halide.features import CONFIG_FEATURES, NODE_FEATURES


@dataclass(frozen=True)
class Draw:
    """How a schedule is drawn; draws that differ often give the same schedule."""

    number: int
    """Seed of the dropout."""
    keep: int = 100
    """Percentage of the search's choices that dropout keeps."""


@dataclass(frozen=True)
class Schedule:
    """A schedule that was applied to a pipeline."""

    stages: tuple[str, ...]
    edges: np.ndarray
    """i64 [m, 2]: consumer, producer"""
    node_features: np.ndarray
    """f32 [n, 287]"""
    config_features: np.ndarray
    """f32 [n, 39]"""
    source: str
    """The schedule as C++."""

    @property
    def digest(self) -> str:
        """Of the features, which schedules that differ have in common only if they are equal."""
        return sha256(self.config_features.tobytes()).hexdigest()


def apply_schedule(pipeline: hl.Pipeline, draw: Draw) -> Schedule:
    """Schedules a pipeline for one thread; its inputs and outputs have estimates.

    A schedule changes the functions that it is applied to, so each one needs its own pipeline.

    Raises:
        halide.HalideError: if the autoscheduler finds no schedule.
    """
    load_plugin()
    os.environ["HL_NUM_PASSES"] = "1"
    parameters = {
        "parallelism": 1,
        "beam_size": 1,
        "random_dropout": draw.keep,
        "random_dropout_seed": draw.number,
    }
    autoscheduler = hl.AutoschedulerParams("Adams2019", parameters)
    with printed() as text:
        found = pipeline.apply_autoscheduler(hl.get_host_target(), autoscheduler)
    rows = np.frombuffer(bytes(found.featurization), "<f4")
    rows = rows.reshape(-1, len(CONFIG_FEATURES) + len(NODE_FEATURES))
    stages, edges = stage_graph(text())
    if len(stages) != len(rows):
        raise RuntimeError(f"{len(rows)} stages have features, but {len(stages)} were printed")
    config, node = np.split(rows, [len(CONFIG_FEATURES)], axis=1)
    return Schedule(stages, edges, node, config, found.schedule_source)


@cache
def load_plugin() -> None:
    """Loads the library, which then prints the graph of every pipeline."""
    # Read before the first call only: printing, and the threads of the cost model.
    os.environ["HL_DEBUG_AUTOSCHEDULE"] = "2"
    os.environ["HL_NUM_THREADS"] = "1"
    # Some loops that a schedule unrolls have no constant extent.
    os.environ["HL_PERMIT_FAILED_UNROLL"] = "1"
    hl.load_plugin(str(Path(hl.__file__).parent / "lib64" / "libautoschedule_adams2019.so"))


@contextmanager
def printed() -> Iterator[Callable[[], str]]:
    """Keeps what the C library prints to standard error; yields a function that returns it."""
    kept = os.dup(2)
    text = [""]
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield lambda: text[0]
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            file.seek(0)
            text[0] = file.read().decode(errors="replace")


def stage_graph(printed: str) -> tuple[tuple[str, ...], np.ndarray]:
    """Reads stages in the order of the features, and edges i64 [m, 2], from consumer to producer.

    A function with updates is a chain of stages, the last one first. What reads the function reads
    the last one.
    """
    counts = _stage_counts(printed)
    stages = [
        f"{name}.update({stage - 1})" if stage else name
        for name, count in counts.items()
        for stage in reversed(range(count))
    ]
    number = {name: place for place, name in enumerate(stages)}

    def stage(name: str, place: int) -> int:
        return number[f"{name}.update({place - 1})" if place else name]

    edges = {
        (number[consumer], stage(producer, counts[producer] - 1))
        for producer, consumer in re.findall(r"^Edge: (\S+) -> (\S+)$", printed, re.MULTILINE)
        if producer in counts
    }
    for name, count in counts.items():
        edges |= {(stage(name, place), stage(name, place - 1)) for place in range(1, count)}
    between = sorted(edge for edge in edges if edge[0] != edge[1])
    return tuple(stages), np.array(between, np.int64).reshape(-1, 2)


def _stage_counts(printed: str) -> dict[str, int]:
    """Returns the number of stages of every function that is not an input, in printed order."""
    counts: dict[str, int] = {}
    name = None
    for line in printed.splitlines():
        if line.startswith("Node: "):
            name = line.removeprefix("Node: ").strip()
            if name in counts:
                # Another pass of the search prints the same again.
                break
            counts[name] = 0
        elif name and re.fullmatch(r"  Stage \d+:", line):
            counts[name] += 1
        elif name and line.startswith("  pointwise: "):
            if " input: 1" in line:
                del counts[name]
            name = None
    return counts
