"""A cost model of TVM's MetaSchedule that asks a server, and reports what was measured."""

import json
import warnings
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tvm.ir.utils import derived_object
from tvm.s_tir.meta_schedule.cost_model import CostModel as TvmCostModel
from tvm.s_tir.meta_schedule.cost_model import PyCostModel

from hlorank import AnswerError, Client, ConfigFeatures, RefusedError
from hlorank.tvm_records import Task, adapt_of, add_known, graph_of, report_database, task_of
from hlorank.tvm_trace import Row, columns_of, rows_of

__all__ = ["CostModel", "Task", "add_known", "report_database", "task_of"]

_NO_STORE = "MEASUREMENTS_OFF"
_SENT = 2_000  # the maximum number of measurements of a call


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
        self._server: _Server | None = _Server(client, other_targets)
        self._target = target
        self._exploration = exploration
        self._fallback = fallback
        self._draw = np.random.default_rng(seed)
        self._rows: defaultdict[Task, list[Row]] = defaultdict(list)
        self._updates: list[tuple[Any, Any, Any]] = []

    def predict(self, context: Any, candidates: list[Any]) -> np.ndarray:
        """Returns f64 [candidates], up to 1 for the candidate that is predicted fastest."""
        if self._server is not None and candidates:
            task = task_of(self._target, context.mod)
            columns = np.stack([columns_of(each.sch.trace) for each in candidates])
            try:
                predicted = self._server.predict(task, self._rows[task], columns)
            except (RefusedError, AnswerError) as error:
                self._go_on_without(error)
            else:
                return self._scores(*predicted)
        if self._fallback is None:
            return self._draw.random(len(candidates))
        for update in self._updates:
            self._fallback.update(*update)
        self._updates.clear()
        return self._fallback.predict(context, candidates)

    def update(self, context: Any, candidates: list[Any], results: list[Any]) -> None:
        """Reports what was measured."""
        traces = (each.sch.trace for each in candidates)
        rows = rows_of(traces, (each.run_secs for each in results))
        if self._fallback is not None:
            self._updates.append((context, candidates, results))
        self._add(task_of(self._target, context.mod), rows)

    def save(self, path: str) -> None:
        """Writes what was measured and loaded here."""
        Path(path).write_text(json.dumps([(*task, rows) for task, rows in self._rows.items()]))

    def load(self, path: str) -> None:
        """Reads what ``save`` wrote, and reports it."""
        for target, kind, rows in json.loads(Path(path).read_text()):
            self._add(Task(target, kind), [(columns, seconds) for columns, seconds in rows])

    def _add(self, task: Task, rows: list[Row]) -> None:
        self._rows[task] += rows
        if self._server is not None:
            try:
                self._server.report(task, rows)
            except (RefusedError, AnswerError) as error:
                self._go_on_without(error)

    def _go_on_without(self, error: Exception) -> None:
        others = "random numbers" if self._fallback is None else type(self._fallback).__name__
        warnings.warn(f"hlorank: {error}; {others} go on", stacklevel=3)
        self._server = None

    def _scores(self, expected: np.ndarray, deviations: np.ndarray) -> np.ndarray:
        noise = self._draw.standard_normal(len(expected))
        drawn = expected + self._exploration * deviations * noise
        return np.exp(drawn.min() - drawn)


class _Server:
    """What a server is asked."""

    def __init__(self, client: Client, others: Sequence[str] | None):
        self._client = client
        self._others = {"other_targets": others or (), "all_other_targets": others is None}
        self._has_store = True

    def predict(
        self, task: Task, rows: list[Row], columns: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns what rises with the logarithm of seconds of each candidate, and deviations."""
        sent = [] if self._has_store else rows[-_SENT:]
        adapt = adapt_of(task.target, sent, use_stored=self._has_store, **self._others)
        features = ConfigFeatures(columns[:, None, :])
        ranking = self._client.rank(graph_of(task.kind), features, adapt=adapt)
        if not ranking.adaptation.rests_on:
            return np.zeros(len(columns)), np.ones(len(columns))
        back = np.argsort(ranking.best)
        expected = ranking.best_scores[back].astype(float)
        if ranking.adaptation.adapted:
            return expected, ranking.log_sd[back].astype(float)
        # A model alone: the spread of its scores is what they are varied by.
        if ranking.unit == "seconds":
            expected = np.log(expected)
        return expected, np.full(len(back), expected.std())

    def report(self, task: Task, rows: list[Row]) -> None:
        """Reports, if the server keeps measurements."""
        if not self._has_store or not rows:
            return
        try:
            self._client.report_measurements(graph_of(task.kind), adapt_of(task.target, rows))
        except RefusedError as error:
            if error.reason != _NO_STORE:
                raise
            self._has_store = False
