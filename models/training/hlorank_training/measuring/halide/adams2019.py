"""Schedules of the Adams2019 autoscheduler, with its features of them.

The autoscheduler is a plugin in Halide's wheel. It returns the features of every stage that is not
an input: 39 of the schedule, and 287 that do not depend on it. It only prints which stage reads
which, to the C library's standard error.
"""

import os
import re
import struct
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

_SHAPES = ((8, 40, 7), (8,), (24, 39), (24,), (32, 32), (32,))
"""Shapes of the arrays of a weights file, first dimension contiguous."""
_SIGNATURE = struct.pack("<4I", 0x68776631, 3, 3, len(_SHAPES))
"""Begins a weights file: magic number, versions of both kinds of features, and number of arrays."""


@dataclass(frozen=True)
class Draw:
    """How a schedule is drawn; draws that differ often give the same schedule."""

    number: int
    """Seed of the noise and of the dropout."""
    noise: float = 0.0
    """Relative noise on the weights of the autoscheduler's cost model."""
    keep: int = 100
    """Percentage of the search's choices that dropout keeps."""
    beam: int = 1


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
    with tempfile.TemporaryDirectory() as folder, printed() as text:
        weights = Path(folder, "adams2019.weights")
        weights.write_bytes(noisy_weights(draw))
        parameters = {
            "parallelism": 1,
            "beam_size": draw.beam,
            "random_dropout": draw.keep,
            "random_dropout_seed": draw.number,
            "weights_path": str(weights),
        }
        autoscheduler = hl.AutoschedulerParams("Adams2019", parameters)
        found = pipeline.apply_autoscheduler(hl.get_host_target(), autoscheduler)
    rows = np.frombuffer(bytes(found.featurization), "<f4")
    rows = rows.reshape(-1, len(CONFIG_FEATURES) + len(NODE_FEATURES))
    stages, edges = stage_graph(text())
    if len(stages) != len(rows):
        raise RuntimeError(f"{len(rows)} stages have features, but {len(stages)} were printed")
    config, node = np.split(rows, [len(CONFIG_FEATURES)], axis=1)
    return Schedule(stages, edges, node, config, found.schedule_source)


def plugin() -> Path:
    """Returns the path of the library."""
    return Path(hl.__file__).parent / "lib64" / "libautoschedule_adams2019.so"


@cache
def load_plugin() -> None:
    """Loads the library, which then prints the graph of every pipeline."""
    # Read before the first call only: printing, and the threads of the cost model.
    os.environ["HL_DEBUG_AUTOSCHEDULE"] = "2"
    os.environ["HL_NUM_THREADS"] = "1"
    # Some loops that a schedule unrolls have no constant extent.
    os.environ["HL_PERMIT_FAILED_UNROLL"] = "1"
    hl.load_plugin(str(plugin()))


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


@cache
def shipped_weights() -> tuple[np.ndarray, ...]:
    """Returns the weights of the cost model, which the plugin contains."""
    content = plugin().read_bytes()
    at = content.index(_SIGNATURE) + len(_SIGNATURE)
    arrays = []
    for shape in _SHAPES:
        at += 4 * (1 + len(shape))
        size = int(np.prod(shape))
        arrays.append(np.frombuffer(content, "<f4", size, at).reshape(shape, order="F"))
        at += 4 * size
    return tuple(arrays)


def noisy_weights(draw: Draw) -> bytes:
    """Returns a weights file; noise is relative to each weight, and a tenth to its array's mean."""
    random = np.random.default_rng(draw.number)
    content = bytearray(_SIGNATURE)
    for weights in shipped_weights():
        relative, absolute = (random.standard_normal(weights.shape) for _ in range(2))
        size = 0.1 * np.abs(weights).mean()
        changed = weights * (1 + draw.noise * relative) + draw.noise * size * absolute
        content += struct.pack(f"<{1 + weights.ndim}I", weights.ndim, *weights.shape)
        content += changed.astype("<f4").tobytes(order="F")
    return bytes(content)
