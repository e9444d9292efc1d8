"""Tasks of TVM MetaSchedule, and how one process builds and measures their candidates.

``python tests/baselines/tvm_tasks.py FOLDER [CANDIDATES]`` measures 32 random candidates of each
task in ``KNOWN``, and keeps TVM's own JSON database of it in ``FOLDER/TASK``. It goes on where it
stopped.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import ClassVar

import numpy as np
import tvm
from tvm import te
from tvm.ir.utils import derived_object
from tvm.s_tir import meta_schedule as ms
from tvm.s_tir.meta_schedule.builder import BuilderResult, PyBuilder
from tvm.s_tir.meta_schedule.runner import PyRunner, PyRunnerFuture, RunnerResult
from tvm.s_tir.meta_schedule.testing import te_workload as workload

TARGET = tvm.target.Target({"kind": "llvm", "mcpu": "znver3", "num-cores": 1})
PER_ROUND = 8

os.environ["TVM_NUM_THREADS"] = "1"
# TVM parses the intrinsics of other processors for ten seconds.
for other in ("cuda", "rocm", "hexagon", "arm_cpu", "riscv_cpu"):
    sys.modules[f"tvm.s_tir.tensor_intrin.{other}"] = ModuleType(other)

_SECONDS = 3
"""Processor time until a candidate is ended: LLVM takes minutes for some."""
_SLOW = 0.02
"""Seconds of a candidate that is not worth a second run."""

KNOWN = {
    "matmul_256": lambda: workload.matmul(256, 256, 256),
    "conv2d_28_32_64": lambda: workload.conv2d_nhwc(1, 28, 28, 32, 64, 3, 1, 1),
}
"""What a model may have seen."""

UNSEEN = {
    "matmul_384_512_512": lambda: workload.matmul(384, 512, 512),
    "conv2d_28_64_128_s2": lambda: workload.conv2d_nhwc(1, 28, 28, 64, 128, 3, 2, 1),
    "conv2d_transpose_8_64_32": lambda: workload.conv2d_transpose_nhwc(1, 8, 8, 64, 32, 4, 2, 1),
    "softmax_128_1024": lambda: workload.softmax_mn(128, 1024),
    "depthwise_28_96_s2": lambda: workload.depthwise_conv2d_nhwc(1, 28, 28, 96, 3, 2, 1),
    "conv2d_bn_relu_14_64": lambda: workload.conv2d_nhwc_bn_relu(1, 14, 14, 64, 64, 3, 1, 1),
    "bmm_transposed_128_8_64": lambda: workload.transpose_batch_matmul(1, 128, 8, 64),
    "conv1d_256_64_128": lambda: workload.conv1d_nlc(1, 256, 64, 128, 3, 1, 1),
}
"""What is searched."""


def module(name: str) -> tvm.IRModule:
    """The module of a task, whose function is ``main``."""
    function = te.create_prim_func({**KNOWN, **UNSEEN}[name]())
    return tvm.IRModule({"main": function.with_attr("global_symbol", "main")})


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
            signal.alarm(12 * _SECONDS)
            os.write(write, repr(work()).encode())
        finally:
            os._exit(0)
    os.close(write)
    text = os.read(read, 100).decode()
    os.close(read)
    os.waitpid(child, 0)
    return [float(text)] if text else []


def _time(mod: tvm.IRModule, args_info) -> float:
    """Processor time of one thread, since other work on the machine interrupts it."""
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
    one = evaluated(1)
    if one > _SLOW:
        return one
    number = max(1, min(100, int(0.002 / max(one, 1e-7))))
    return float(np.median([evaluated(number) for _ in range(5)]))


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
