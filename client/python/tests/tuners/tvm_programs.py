"""A small product of matrices, and how TVM's candidates of it are measured in this process."""

import sys
from types import ModuleType

import numpy as np
import tvm
from tvm import te
from tvm.ir.utils import derived_object
from tvm.s_tir import meta_schedule as ms
from tvm.s_tir.meta_schedule.builder import BuilderResult, PyBuilder
from tvm.s_tir.meta_schedule.builder.local_builder import default_build
from tvm.s_tir.meta_schedule.runner import PyRunner, PyRunnerFuture, RunnerResult
from tvm.s_tir.meta_schedule.testing import te_workload as workload

TARGET = tvm.target.Target({"kind": "llvm", "num-cores": 1})
_BUILT = {}

# TVM parses the intrinsics of other processors for ten seconds.
for other in ("cuda", "rocm", "hexagon", "arm_cpu", "riscv_cpu"):
    sys.modules.setdefault(f"tvm.s_tir.tensor_intrin.{other}", ModuleType(other))


def module(name: str = "matmul", size: int = 64) -> tvm.IRModule:
    """A module whose function is ``main``."""
    arguments = {"matmul": (size, size, size), "softmax_mn": (size, size)}[name]
    function = te.create_prim_func(getattr(workload, name)(*arguments))
    return tvm.IRModule({"main": function.with_attr("global_symbol", "main")})


def context(mod: tvm.IRModule, seed: int = 1) -> ms.TuneContext:
    """A task of TVM."""
    return ms.TuneContext(
        mod,
        target=TARGET,
        space_generator="post-order-apply",
        search_strategy=strategy(),
        task_name="main",
        rand_state=seed,
        num_threads=1,
    )


def strategy() -> ms.search_strategy.EvolutionarySearch:
    """A short search."""
    return ms.search_strategy.EvolutionarySearch(
        population_size=16, init_min_unmeasured=8, genetic_num_iters=1
    )


@derived_object
class Builder(PyBuilder):
    def build(self, build_inputs):
        return [BuilderResult(_key(each.mod), None) for each in build_inputs]


def _key(mod: tvm.IRModule) -> str:
    key = f"memory:{len(_BUILT)}"
    _BUILT[key] = default_build(mod, TARGET, None)
    return key


@derived_object
class Future(PyRunnerFuture):
    def __init__(self, seconds):
        super().__init__()
        self.seconds = seconds

    def done(self):
        return True

    def result(self):
        return RunnerResult(self.seconds, None)


@derived_object
class Runner(PyRunner):
    def run(self, runner_inputs):
        return [
            Future([_time(_BUILT.pop(str(each.artifact_path)), each)]) for each in runner_inputs
        ]


def _time(built, runner_input) -> float:
    built = built.jit() if hasattr(built, "jit") else built
    shapes = [[int(size) for size in info.shape] for info in runner_input.args_info]
    arguments = [tvm.runtime.tensor(np.ones(shape, np.float32)) for shape in shapes]
    evaluator = built.time_evaluator("main", tvm.cpu(0), number=1, repeat=3)
    return float(np.min(evaluator(*arguments).results))


def search(cost_model, folder, trials: int = 8, database: str = "memory", callbacks=()):
    """Searches the product four candidates at a time, and returns TVM's database."""
    return ms.tune_tasks(
        tasks=[context(module())],
        task_weights=[1.0],
        work_dir=str(folder),
        max_trials_global=trials,
        num_trials_per_iter=4,
        builder=Builder(),
        runner=Runner(),
        cost_model=cost_model,
        database=database,
        # RemoveBuildArtifact, one of the defaults, would remove the folder of a path.
        measure_callbacks=[
            ms.measure_callback.UpdateCostModel(),
            ms.measure_callback.AddToDatabase(),
            *callbacks,
        ],
    )
