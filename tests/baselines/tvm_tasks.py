"""Tasks of TVM MetaSchedule.

Every task is an operator, or a fused group of them, of a Relax program: a block of convolutions and
a transformer layer. Known tasks are those of the program in two sizes, and unseen ones those of it
in a third.

``python tests/baselines/tvm_tasks.py FOLDER [CANDIDATES]`` measures 32 random candidates of each
known task, and keeps TVM's own JSON database of it in ``FOLDER/TASK``. It goes on where it stopped.
"""

import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tvm
from hlorank_training.measuring.tvm.candidates import Measured, Parameters, search, tasks_of
from tvm import relax
from tvm.relax import op
from tvm.s_tir import meta_schedule as ms

PER_ROUND = 8
"""Candidates that are measured between two calls of a cost model."""


class Sizes(NamedTuple):
    """Sizes of the program."""

    image: int
    channels: int
    tokens: int
    width: int
    heads: int


PROGRAMS = {
    "small": Sizes(image=14, channels=16, tokens=48, width=128, heads=2),
    "medium": Sizes(image=20, channels=24, tokens=96, width=192, heads=3),
    "large": Sizes(image=28, channels=32, tokens=128, width=256, heads=4),
}
_OPERATORS = {
    "fused_conv2d_add_relu": "convolution",
    "conv2d1": "depthwise",
    "conv2d_transpose": "transposed",
    "max_pool2d": "pooling",
    "layer_norm": "normalization",
    "matmul": "projection",
    "matmul1": "attention",
    "softmax": "softmax",
    "fused_matmul3_add1_gelu": "perceptron",
}
"""The name of each task, by that which TVM gives it. Others move data, or are of the same kind."""

KNOWN = [f"{name}_{size}" for size in ("small", "medium") for name in _OPERATORS.values()]
"""What a model may have seen."""
UNSEEN = [f"{name}_large" for name in _OPERATORS.values()]
"""What is searched."""


def program(sizes: Sizes) -> tvm.IRModule:
    """The program."""
    image, channels, tokens, width, heads = sizes
    builder = relax.BlockBuilder()
    parameters = Parameters()
    new = parameters.new
    picture, text = new(1, channels, image, image), new(tokens, width)
    filters = new(2 * channels, channels, 3, 3), new(2 * channels, 1, 3, 3)
    bias, back = new(1, 2 * channels, 1, 1), new(2 * channels, channels, 4, 4)
    scale, shift = new(width), new(width)
    projection, hidden, hidden_bias = new(width, 3 * width), new(width, 4 * width), new(4 * width)

    def per_head(part: relax.Expr) -> relax.Var:
        apart = op.reshape(part, (tokens, heads, width // heads))
        return builder.emit(op.permute_dims(apart, (1, 0, 2)))

    with builder.function("main", parameters.every):
        with builder.dataflow():
            convolved = op.nn.conv2d(picture, filters[0], strides=2, padding=1)
            activated = builder.emit(op.nn.relu(op.add(convolved, bias)))
            by_channel = op.nn.conv2d(activated, filters[1], padding=1, groups=2 * channels)
            pooled = builder.emit(op.nn.max_pool2d(by_channel, (2, 2), strides=(2, 2)))
            enlarged = builder.emit(op.nn.conv2d_transpose(pooled, back, strides=2, padding=1))
            normal = builder.emit(op.nn.layer_norm(text, scale, shift, axes=[-1]))
            parts = builder.emit(op.split(op.matmul(normal, projection), 3, 1))
            queries, keys, values = (per_head(part) for part in parts)
            products = op.matmul(queries, op.permute_dims(keys, (0, 2, 1)))
            attended = builder.emit(op.matmul(op.nn.softmax(products, axis=-1), values))
            perceived = builder.emit(op.nn.gelu(op.add(op.matmul(normal, hidden), hidden_bias)))
            output = builder.emit_output((enlarged, attended, perceived))
        builder.emit_func_output(output)
    return builder.finalize()


@cache
def _modules(size: str) -> dict[str, tvm.IRModule]:
    named = tasks_of(program(PROGRAMS[size]))
    return {f"{name}_{size}": named[of_tvm] for of_tvm, name in _OPERATORS.items()}


def module(name: str) -> tvm.IRModule:
    """The module of a task, whose function is ``main``."""
    return _modules(name.rpartition("_")[2])[name]


def known_database(folder: Path, name: str) -> ms.database.JSONDatabase:
    """The database of a task in a folder that was collected."""
    paths = (folder / name / f"database_{part}.json" for part in ("workload", "tuning_record"))
    return ms.database.JSONDatabase(*map(str, paths), allow_missing=False)


def main() -> None:
    """Collects."""
    folder, candidates = Path(sys.argv[1]), int((sys.argv[2:] or ["32"])[0])
    for number, name in enumerate(KNOWN):
        records = folder / name / "database_tuning_record.json"
        kept = len(records.read_text().splitlines()) if records.exists() else 0
        if kept >= candidates:
            continue
        options = {"work_dir": str(folder / name), "strategy": "replay-trace", "database": "json"}
        (folder / name).mkdir(parents=True, exist_ok=True)
        options["num_trials_per_iter"] = PER_ROUND
        search(module(name), "random", candidates - kept, 1 + number + 100 * kept, **options)
        done = np.array(Measured.seconds)
        failed = np.isinf(done).sum()
        print(f"{name}: {len(done)} measured, {failed} failed, best {done.min() * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
