"""A cost model of TVM's MetaSchedule that asks a server, and reports what was measured."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tvm.ir.utils import derived_object
from tvm.s_tir.meta_schedule import MeasureCandidate, TuneContext
from tvm.s_tir.meta_schedule.cost_model import CostModel as TvmCostModel
from tvm.s_tir.meta_schedule.cost_model import PyCostModel
from tvm.s_tir.meta_schedule.runner import RunnerResult

from hlorank import Client, Experience, Fallback, Predicted
from hlorank.tuners.proposals import result_of
from hlorank.tuners.tvm_records import Task, add_known, experience_of, report_database, task_of
from hlorank.tuners.tvm_trace import Columns, columns_of, results_of

__all__ = ["CostModel", "Task", "add_known", "report_database", "task_of"]


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
        others = "random numbers" if fallback is None else type(fallback).__name__
        self._client = client
        self._options = {
            "other_targets": other_targets or (),
            "all_other_targets": other_targets is None,
            "fallback": Fallback(f"{others} go on"),
        }
        self._target = target
        self._exploration = exploration
        self._fallback = fallback
        self._draw = np.random.default_rng(seed)
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
        times = results_of(each.run_secs for each in results)
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
