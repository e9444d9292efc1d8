"""Tasks of TVM MetaSchedule, and how one process builds and measures their candidates.

Every task is an operator, or a fused group of them, of a Relax program: a block of convolutions and
a transformer layer. Known tasks are those of the program in two sizes, and unseen ones those of it
in a third.

``python tests/baselines/tvm_tasks.py FOLDER [CANDIDATES]`` measures 32 random candidates of each
known task, and keeps TVM's own JSON database of it in ``FOLDER/TASK``. It goes on where it stopped.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import ClassVar, NamedTuple

import numpy as np
import tvm
from tvm import relax
from tvm.ir.utils import derived_object
from tvm.relax import op, transform
from tvm.s_tir import meta_schedule as ms
from tvm.s_tir.meta_schedule.builder import BuilderResult, PyBuilder
from tvm.s_tir.meta_schedule.runner import PyRunner, PyRunnerFuture, RunnerResult

TARGET = tvm.target.Target({"kind": "llvm", "mcpu": "znver3", "num-cores": 1})
PER_ROUND = 8

os.environ["TVM_NUM_THREADS"] = "1"
# TVM parses the intrinsics of other processors for ten seconds.
for other in ("cuda", "rocm", "hexagon", "arm_cpu", "riscv_cpu"):
    sys.modules[f"tvm.s_tir.tensor_intrin.{other}"] = ModuleType(other)

_SECONDS = 3
"""Processor time until a candidate is ended: LLVM takes minutes for some."""
_REFERENCE = 5e-4
"""Seconds of the fixed computation on a free processor."""
_SLOW = 0.02
"""Seconds of a candidate that is not worth a second run."""


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
    """The program, fused as TVM compiles it."""
    image, channels, tokens, width, heads = sizes
    builder = relax.BlockBuilder()
    parameters = []

    def new(*shape: int) -> relax.Var:
        parameter = relax.Var(f"p{len(parameters)}", relax.TensorType(shape, "float32"))
        parameters.append(parameter)
        return parameter

    picture, text = new(1, channels, image, image), new(tokens, width)
    filters = new(2 * channels, channels, 3, 3), new(2 * channels, 1, 3, 3)
    bias, back = new(1, 2 * channels, 1, 1), new(2 * channels, channels, 4, 4)
    scale, shift = new(width), new(width)
    projection, hidden, hidden_bias = new(width, 3 * width), new(width, 4 * width), new(4 * width)

    def per_head(part: relax.Expr) -> relax.Var:
        apart = op.reshape(part, (tokens, heads, width // heads))
        return builder.emit(op.permute_dims(apart, (1, 0, 2)))

    with builder.function("main", parameters):
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
    passes = (
        transform.LegalizeOps(),
        transform.AnnotateTIROpPattern(),
        transform.FuseOps(),
        transform.FuseTIR(),
    )
    with TARGET:
        return tvm.transform.Sequential(passes)(builder.finalize())


@cache
def _modules(size: str) -> dict[str, tvm.IRModule]:
    tasks = ms.relax_integration.extract_tasks(program(PROGRAMS[size]), TARGET)
    named = {each.task_name: each.dispatched[0] for each in tasks}
    return {f"{name}_{size}": named[of_tvm] for of_tvm, name in _OPERATORS.items()}


def module(name: str) -> tvm.IRModule:
    """The module of a task, whose function is ``main``."""
    return _modules(name.rpartition("_")[2])[name]


class Measured:
    """What was measured, in order."""

    seconds: ClassVar[list[float]] = []
    """Infinite for a failure."""
    after: Callable[[], float] | None = None
    clock: ClassVar[list[float]] = []
    """What ``after`` returned after each."""


_BUILT: dict[str, tvm.IRModule] = {}


@derived_object
class Builder(PyBuilder):
    """Keeps the modules, since the runner's child builds them."""

    def build(self, build_inputs):
        """Returns a key in place of a path."""
        keys = [f"memory:{id(each)}:{number}" for number, each in enumerate(build_inputs)]
        _BUILT.update(zip(keys, (each.mod for each in build_inputs), strict=True))
        return [BuilderResult(key, None) for key in keys]


@derived_object
class Future(PyRunnerFuture):
    """What came of a candidate."""

    def __init__(self, seconds):
        super().__init__()
        self.seconds = seconds

    def done(self):
        """True, since the runner waits."""
        return True

    def result(self):
        """The times, or a failure."""
        failed = not self.seconds
        return RunnerResult(self.seconds or None, "failed" if failed else None)


@derived_object
class Runner(PyRunner):
    """Builds and runs each candidate in a forked child, which may crash or hang."""

    def run(self, runner_inputs):
        """Measures one candidate after the other."""
        futures = []
        for each in runner_inputs:
            mod = _BUILT.pop(str(each.artifact_path))
            seconds = _in_child(lambda mod=mod, each=each: _time(mod, each.args_info))
            Measured.seconds.append(seconds[0] if seconds else np.inf)
            if Measured.after is not None:
                Measured.clock.append(Measured.after())
            futures.append(Future(seconds))
        return futures


def _in_child(work: Callable[[], float]) -> list[float]:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            signal.setitimer(signal.ITIMER_PROF, _SECONDS)
            signal.alarm(200 * _SECONDS)
            os.write(write, repr(work()).encode())
        finally:
            os._exit(0)
    os.close(write)
    text = os.read(read, 100).decode()
    os.close(read)
    os.waitpid(child, 0)
    return [float(text)] if text else []


def _slowness() -> float:
    """How slow the processor is now: what a fixed computation takes, over what it takes at best."""
    matrix = np.ones((64, 64), np.float32)  # too small for several threads

    def took() -> float:
        begin = time.thread_time()
        for _ in range(50):
            matrix @ matrix
        return time.thread_time() - begin

    return float(np.median([took() for _ in range(5)])) / _REFERENCE


def _time(mod: tvm.IRModule, args_info) -> float:
    """Processor time of one thread, as if nobody else slowed the processor down."""
    built = ms.builder.local_builder.default_build(mod, TARGET, None)
    built = built.jit() if hasattr(built, "jit") else built
    draw = np.random.default_rng(0)
    shapes = [[int(size) for size in info.shape] for info in args_info]
    arrays = [draw.standard_normal(shape).astype(np.float32) for shape in shapes]
    arguments = [tvm.runtime.tensor(array) for array in arrays]

    def evaluated(number: int) -> float:
        begin = time.thread_time()
        for _ in range(number):
            main(*arguments)
        return (time.thread_time() - begin) / number

    main = built["main"]
    main(*arguments)
    signal.setitimer(signal.ITIMER_PROF, 0)  # with it, the clock moves in ticks of milliseconds
    slowness = _slowness()
    one = evaluated(1)
    if one > _SLOW:
        return one / slowness
    number = max(1, min(100, int(0.002 / max(one, 1e-7))))
    seconds = float(np.median([evaluated(number) for _ in range(5)]))
    return 2 * seconds / (slowness + _slowness())


def search(name: str, cost_model, trials: int, seed: int, **options) -> None:
    """Searches a task; ``Measured`` has what was measured."""
    ms.tune_tir(
        module(name),
        TARGET,
        max_trials_global=trials,
        num_trials_per_iter=PER_ROUND,
        builder=Builder(),
        runner=Runner(),
        cost_model=cost_model,
        num_tuning_cores=1,
        seed=seed,
        # RemoveBuildArtifact, one of the defaults, would remove the folder of a path.
        measure_callbacks=[
            ms.measure_callback.UpdateCostModel(),
            ms.measure_callback.AddToDatabase(),
        ],
        **options,
    )


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
        Measured.seconds.clear()
        options = {"work_dir": str(folder / name), "strategy": "replay-trace", "database": "json"}
        (folder / name).mkdir(parents=True, exist_ok=True)
        search(name, "random", candidates - kept, 1 + number + 100 * kept, **options)
        done = np.array(Measured.seconds)
        failed = np.isinf(done).sum()
        print(f"{name}: {len(done)} measured, {failed} failed, best {done.min() * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
