"""Builds and runs candidates of TVM's MetaSchedule in one process, which takes a third of the time
of TVM's own builder and runner."""

import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import tvm
from tvm.ir.utils import derived_object
from tvm.relax import transform
from tvm.s_tir import meta_schedule as ms
from tvm.s_tir.meta_schedule.builder import BuilderResult, PyBuilder
from tvm.s_tir.meta_schedule.runner import PyRunner, PyRunnerFuture, RunnerResult
from tvm.target.codegen import llvm_get_system_cpu

TARGET = tvm.target.Target({"kind": "llvm", "mcpu": llvm_get_system_cpu(), "num-cores": 1})

os.environ["TVM_NUM_THREADS"] = "1"
logging.disable(logging.INFO)  # every search sets its own levels again
# TVM parses the intrinsics of other processors for ten seconds.
for other in ("cuda", "rocm", "hexagon", "arm_cpu", "riscv_cpu"):
    sys.modules[f"tvm.s_tir.tensor_intrin.{other}"] = ModuleType(other)

_SECONDS = 3
"""Processor time until a candidate is ended: LLVM takes minutes for some."""
_REFERENCE = 5e-4
"""Seconds of the fixed computation on a free processor."""
_SLOW = 0.02
"""Seconds of a candidate that is not worth more than two runs."""
_LONG = 0.002
"""Seconds of runs that are timed together: a few runs of some microseconds differ by a third."""


_BUILT: dict[str, tvm.IRModule] = {}


@derived_object
class Builder(PyBuilder):
    """Keeps the modules, since the runner's child builds them."""

    def build(self, build_inputs: list[Any]) -> list[BuilderResult]:
        """Returns a key in place of a path."""
        keys = [f"memory:{id(each)}:{number}" for number, each in enumerate(build_inputs)]
        _BUILT.update(zip(keys, (each.mod for each in build_inputs), strict=True))
        return [BuilderResult(key, None) for key in keys]


@derived_object
class Future(PyRunnerFuture):
    """What came of a candidate."""

    def __init__(self, seconds: list[float]):
        super().__init__()
        self.seconds = seconds

    def done(self) -> bool:
        """True, since the runner waits."""
        return True

    def result(self) -> RunnerResult:
        """The times of both passes, or a failure."""
        failed = not self.seconds
        return RunnerResult(self.seconds or None, "failed" if failed else None)


@derived_object
class Runner(PyRunner):
    """Builds and runs each candidate in a forked child, which may crash or hang."""

    def run(self, runner_inputs: list[Any]) -> list[Future]:
        """Measures one candidate after the other."""
        return [Future(_measured(each)) for each in runner_inputs]


def _measured(given: Any) -> list[float]:
    """Returns the seconds of a built candidate in two passes; none if it fails."""
    module = _BUILT.pop(str(given.artifact_path))
    return _in_child(lambda: _passes(module, given.args_info))


def measured_candidates(module: tvm.IRModule, count: int, seed: int, folder: str) -> Any:
    """Measures random candidates of a task, whose function is ``main``; returns TVM's database."""
    return ms.tune_tir(
        module,
        TARGET,
        folder,
        max_trials_global=count,
        builder=Builder(),
        runner=Runner(),
        cost_model="random",
        strategy="replay-trace",
        database="memory",
        num_tuning_cores=1,
        seed=seed,
        # RemoveBuildArtifact, one of the defaults, would remove the folder of a path.
        measure_callbacks=[
            ms.measure_callback.UpdateCostModel(),
            ms.measure_callback.AddToDatabase(),
        ],
    )


def tasks_of(program: tvm.IRModule) -> dict[str, tvm.IRModule]:
    """Returns the tasks of a Relax program, which is fused as TVM compiles it."""
    passes = (
        transform.LegalizeOps(),
        transform.AnnotateTIROpPattern(),
        transform.FuseOps(),
        transform.FuseTIR(),
    )
    with TARGET:
        fused = tvm.transform.Sequential(passes)(program)
    tasks = ms.relax_integration.extract_tasks(fused, TARGET)
    return {each.task_name: each.dispatched[0] for each in tasks}


def _in_child(work: Callable[[], list[float]]) -> list[float]:
    """Returns what ``work`` returns in a forked process; nothing if that dies."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            signal.setitimer(signal.ITIMER_PROF, _SECONDS)
            signal.alarm(200 * _SECONDS)
            os.write(write, " ".join(map(repr, work())).encode())
        finally:
            os._exit(0)
    os.close(write)
    text = os.read(read, 200).decode()
    os.close(read)
    os.waitpid(child, 0)
    return [float(word) for word in text.split()]


def _passes(mod: tvm.IRModule, args_info: Any) -> list[float]:
    """Processor time of one thread in two passes, as if nobody else slowed the processor down."""
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

    def one_pass(number: int, repeats: int) -> float:
        slowness = _slowness()
        return float(np.median([evaluated(number) for _ in range(repeats)])) / slowness

    main = built["main"]
    main(*arguments)
    signal.setitimer(signal.ITIMER_PROF, 0)  # with it, the clock moves in ticks of milliseconds
    one = evaluated(1)
    if one > _SLOW:
        return [one_pass(1, 1), one_pass(1, 1)]
    number = max(1, int(_LONG / max(one, 1e-6)))
    return [one_pass(number, 3), one_pass(number, 3)]


def _slowness() -> float:
    """How slow the processor is now: what a fixed computation takes, over what it takes at best."""
    matrix = np.ones((64, 64), np.float32)  # too small for several threads

    def took() -> float:
        begin = time.thread_time()
        for _ in range(50):
            matrix @ matrix
        return time.thread_time() - begin

    return float(np.median([took() for _ in range(5)])) / _REFERENCE
