"""A cost model of TVM's MetaSchedule that asks a server, and reports what was measured.

Records of TVM's databases are reported, too, and taken from what a server has measured.
"""

import copyreg
import json
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from math import inf, prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tvm.ir import IRModule
from tvm.ir.utils import derived_object
from tvm.s_tir import Schedule
from tvm.s_tir.meta_schedule import MeasureCandidate, TuneContext
from tvm.s_tir.meta_schedule.arg_info import ArgInfo
from tvm.s_tir.meta_schedule.cost_model import CostModel as TvmCostModel
from tvm.s_tir.meta_schedule.cost_model import PyCostModel, XGBModel
from tvm.s_tir.meta_schedule.database import Database, TuningRecord
from tvm.s_tir.meta_schedule.runner import RunnerResult
from tvm.s_tir.meta_schedule.utils import shash2hex
from tvm.s_tir.schedule import Trace
from tvm.target import Target

from hlorank import Adapt, Client, ConfigFeatures, Experience, Fallback, Graph, Kept, Predicted
from hlorank.checks.arguments import U64, instance, number, whole_number, wrong
from hlorank.tuners.proposals import instance_of, result_of, rows_of
from hlorank.tuners.tvm_trace import (
    AXES,
    COLUMNS,
    FEATURE_SET,
    LEVELS,
    LOCATIONS,
    SPLITS,
    SUMS,
    Columns,
    Reading,
    columns_of,
    kind_of,
    results_of,
)
from hlorank.wire.transport import Connected

_EXPLORATION = "a number of standard deviations, from 0"


class Task(NamedTuple):
    """What is tuned, as a server keeps it."""

    target: str
    """What was measured on, and the task: each task is a target of its own."""
    kind: str
    """Tasks of one kind say what to expect of each other."""


@derived_object
class CostModel(PyCostModel):
    """Predicts candidates by what a server knows of their task, of other tasks and other targets.

    >>> model = CostModel(Client("127.0.0.1:7070"), target="EPYC 9R14, LLVM 19, 1 core")
    >>> tune_tir(module, "llvm -num-cores 1", work_dir, 64, cost_model=model)

    What is predicted depends on the decisions of a trace alone, so no program is lowered. The model
    ``tvm-llvm-cpu`` of the server knows them before anything is measured. Each task is a target of
    its own, and tasks of one kind say what to expect of each other. If the server is away, there is
    one warning, and ``fallback`` goes on with what was measured.

    Args:
        client: The server.
        target: What run times are measured on: processor, compiler and number of threads.
        other_targets: At most 16 other tasks, as ``task_of(…).target`` names them, that say what to
            expect; None for all of the kind.
        exploration: By how many standard deviations predictions are varied at random, so that what
            is little known is measured, too; 0 for none.
        fallback: What predicts without the server; None for random numbers.
        seed: Seed of random numbers.

    Raises:
        ArgumentError: if an argument cannot be used, or ``fallback`` needs a package that is not
            installed.
    """

    def __init__(
        self,
        client: Client,
        target: str,
        *,
        other_targets: Sequence[str] | None = None,
        exploration: float = 0.5,
        fallback: TvmCostModel | None = None,
        seed: int = 0,
    ):
        super().__init__()
        if fallback is not None:
            instance(fallback, TvmCostModel, "fallback", "a cost model of MetaSchedule or None")
        others = "random numbers" if fallback is None else type(fallback).__name__
        # TVM imports it in the first prediction.
        needs = ["xgboost"] if isinstance(fallback, XGBModel) else []
        self._client = client
        self._options = {
            "other_targets": other_targets or (),
            "all_other_targets": other_targets is None,
            "fallback": Fallback(f"{others} go on", needs=needs),
        }
        # Refuses what the first prediction would refuse, far from here.
        Adapt(Kept(target).target, other_targets=other_targets or ())
        self._target = target
        self._exploration = number(exploration, "exploration", _EXPLORATION)
        if not 0 <= self._exploration < inf:
            raise wrong("exploration", exploration, _EXPLORATION)
        self._fallback = fallback
        self._draw = np.random.default_rng(whole_number(seed, "seed", most=U64))
        self._experiences: dict[Task, Experience[Columns]] = {}
        self._updates: list[tuple[TuneContext, list[MeasureCandidate], list[RunnerResult]]] = []
        """What the fallback did not learn yet."""

    def predict(self, context: TuneContext, candidates: list[MeasureCandidate]) -> np.ndarray:
        """Returns f64 [candidates], up to 1 for the candidate that is predicted fastest."""
        if candidates:
            experience = self._of(task_of(self._target, context.mod))
            predicted = experience.predict([columns_of(each.sch.trace) for each in candidates])
            if predicted is not None:
                return self._scores(predicted)
        if self._fallback is None:
            return self._draw.random(len(candidates))
        for update in self._updates:
            self._fallback.update(*update)
        self._updates.clear()
        found: np.ndarray = self._fallback.predict(context, candidates)
        return found

    def update(
        self, context: TuneContext, candidates: list[MeasureCandidate], results: list[RunnerResult]
    ) -> None:
        """Reports what was measured."""
        # A fallback such as XGBoost trains for seconds, so it learns only once it is needed.
        if self._fallback is not None:
            self._updates.append((context, candidates, results))
        columns = [columns_of(each.sch.trace) for each in candidates]
        # A runner may have times of an attempt that failed in the end.
        times = results_of(None if each.error_msg else each.run_secs for each in results)
        self._of(task_of(self._target, context.mod)).add(columns, times)

    def save(self, path: str) -> None:
        """Writes what was measured and loaded here."""
        tasks = [
            (*task, [(columns.tolist(), result.seconds) for columns, result in each.measured])
            for task, each in self._experiences.items()
        ]
        Path(path).write_text(json.dumps(tasks))

    def load(self, path: str) -> None:
        """Reads what ``save`` wrote, and reports it."""
        for target, kind, rows in json.loads(Path(path).read_text()):
            columns = [np.array(each, np.float32) for each, _ in rows]
            results = [result_of(seconds, "crash") for _, seconds in rows]
            self._of(Task(target, kind)).add(columns, results)

    def _of(self, task: Task) -> Experience[Columns]:
        if task not in self._experiences:
            self._experiences[task] = experience_of(self._client, task, **self._options)
        return self._experiences[task]

    def _scores(self, predicted: Predicted) -> np.ndarray:
        """Draws from what is predicted; a model alone is varied by the spread of its scores."""
        if not predicted.is_known:
            return self._draw.random(len(predicted.scores))
        is_time = predicted.unit == "seconds"
        expected = np.log(predicted.scores) if is_time else predicted.scores
        deviations = expected.std() if predicted.log_sd is None else predicted.log_sd
        noise = self._draw.standard_normal(len(expected))
        drawn = expected + self._exploration * deviations * noise
        scores: np.ndarray = np.exp(drawn.min() - drawn)
        return scores


# Here, since TVM's decorator puts an object of its own around one of the class.
copyreg.pickle(CostModel, Connected.__reduce__)


def report_database(client: Client, target: str, database: Database) -> int:
    """Reports the records of a database of TVM, and returns how many it has that were measured.

    Raises:
        RefusedError: if the server is away, or keeps no measurements.
    """
    tasks = defaultdict(list)
    for record in database.get_all_tuning_records():
        # A record without times is a schedule that was never measured: failures have 1e10 seconds.
        if not record.run_secs:
            continue
        tasks[task_of(target, record.workload.mod)].append(record)
    for task, records in tasks.items():
        columns = [columns_of(each.trace) for each in records]
        times = results_of(each.run_secs for each in records)
        error = experience_of(client, task).add(columns, times)
        if error is not None:
            raise error
    return sum(map(len, tasks.values()))


def add_known(
    client: Client,
    target: str,
    database: Database,
    module: IRModule,
    compiled_for: Target,
    *,
    records: int = 16,
) -> int:
    """Adds the fastest candidates of a task that a server has measured to a database of TVM.

    A search that has the database then varies them, and the fastest one is its first answer.

    Args:
        client: The server.
        target: What they were measured on, as for ``CostModel``.
        database: Where they are added.
        module: The task, whose function is ``main``.
        compiled_for: What TVM compiles for.
        records: The maximum number.

    Returns:
        How many were added: candidates that other sketches of this version of TVM made, or that
        their columns do not describe in full, are left out.

    Raises:
        RefusedError: if the server is away, or keeps no measurements.
    """
    whole_number(records, "records", 1)
    times = experience_of(client, task_of(target, module)).kept_times(rows_of)
    known = [(np.array(row), seconds) for row, seconds in times.items() if seconds]
    if not known:
        return 0  # design spaces take time
    context = TuneContext(module, target=compiled_for, space_generator="post-order-apply")
    traces = [each.trace for each in context.generate_design_space()]
    workload = database.commit_workload(module)
    arguments = ArgInfo.from_entry_func(module)
    added = 0
    for columns, seconds in known:
        if added == records:
            break
        trace = _replayed(context, traces, columns)
        if trace is not None:
            record = TuningRecord(trace, workload, [seconds], compiled_for, arguments)
            database.commit_tuning_record(record)
            added += 1
    return added


def task_of(target: str, module: IRModule) -> Task:
    """Returns what a server keeps the measurements of a module on a target under."""
    return Task(f"{Kept(target).target}, {shash2hex(module)}", kind_of(module))


def experience_of(client: Client, task: Task, **options: Any) -> Experience[Columns]:
    """Returns what a server keeps of a task."""
    return Experience(client, _graph_of(task.kind), _configurations, task.target, **options)


@cache
def _graph_of(kind: str) -> Graph:
    return Graph.from_feature_set(FEATURE_SET, config_columns=COLUMNS, instance=instance_of(kind))


def _configurations(columns: Sequence[Columns]) -> ConfigFeatures:
    return ConfigFeatures(np.stack(columns)[:, None, :])


def _replayed(context: TuneContext, traces: list[Trace], columns: np.ndarray) -> Trace | None:
    """Returns the trace of a candidate with these columns, ready to compile."""
    for trace in traces:
        decided = _decided(trace, dict(zip(COLUMNS, columns.astype(int).tolist(), strict=True)))
        if decided is None:
            continue
        schedule = Schedule(context.mod)
        decided.apply_to_schedule(schedule, remove_postproc=False)
        # A location that the other decisions do not allow is changed as the trace is applied.
        if not np.array_equal(columns_of(schedule.trace), columns):
            continue
        schedule.enter_postproc()
        if all(each.apply(schedule) for each in context.space_generator.postprocs):
            return schedule.trace.simplified(remove_postproc=False)
    return None


def _decided(trace: Trace, columns: dict[str, int]) -> Trace | None:
    """Returns the trace with the decisions that columns describe; None if it has other axes."""
    read = Reading.of(trace)
    tiled = read.tiled
    levels = [f"level{level}" for level in range(LEVELS)]
    own = [[columns[f"axis{axis}_{level}"] for level in levels] for axis in range(AXES)]
    sums = [[columns[f"sum{axis}_{level}"] for level in levels[:2]] for axis in range(SUMS)]
    all_axes = [columns[f"axes_{level}"] for level in levels]
    all_sums = [columns["sums_level0"], columns["sums_level1"]]
    if not (_set(tiled.spatial, own, all_axes) and _set(tiled.summed, sums, all_sums)):
        return None
    for place, split in enumerate(read.splits[:SPLITS]):
        if len(split) != 2:
            return None
        split[:] = [columns[f"split{place}_{part}"] for part in ("outer", "inner")]
    for place, choice in enumerate(read.choices[:-3:-1]):
        choice[0] = columns[f"choice{place}"] - 1
    for place, location in enumerate(read.locations[: min(columns["locations"], LOCATIONS)]):
        location[0] = columns[f"location{place}"]
    for instruction, decision in read.sampled:
        value = decision if len(decision) > 1 else decision[0]
        trace = trace.with_decision(instruction, value, remove_postproc=True)
    return trace


def _set(axes: list[list[int]], own: list[list[int]], products: list[int]) -> bool:
    """Sets the factors of axes, from the innermost one; what several have no columns of their own
    for is one axis with more than one iteration. Returns whether their extents allow it."""
    inner_first = axes[::-1]
    for axis, factors in zip(inner_first, own, strict=False):
        if prod(axis) != prod(factors):
            return False
        axis[:] = factors
    others = [axis for axis in inner_first[len(own) :] if prod(axis) > 1]
    known = [prod(level) for level in zip(*own, strict=True)]
    left = [level // of for level, of in zip(products, known, strict=True)]
    if len(others) == 1 and prod(left) == prod(others[0]):
        others[0][:] = left
        return True
    return not others and prod(left) == 1
