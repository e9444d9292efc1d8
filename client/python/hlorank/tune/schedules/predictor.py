"""Predictions of a server's model for schedules, which learns from what was measured."""

from collections.abc import Sequence

import numpy as np

from hlorank.client import Client
from hlorank.halide.schedule import Schedule
from hlorank.search import Experience, Kept, Result
from hlorank.tune.schedules.ranking import configurations_of, graph_of
from hlorank.tune.schedules.run import Candidate, ScheduleRun


class SchedulePredictor:
    """Scores the schedules of a run's pipeline, and reports what was measured of them."""

    def __init__(self, client: Client, run: ScheduleRun, model: str | None, kept: Kept):
        self._client, self._run, self._model, self._kept = client, run, model, kept
        self._experience: Experience[Schedule] | None = None

    def scores(self, schedules: Sequence[Schedule]) -> np.ndarray:
        """Returns scores f64 [schedules]; lower is predicted faster.

        Raises:
            HlorankError: if the call fails.
        """
        predicted = self._of(schedules[0]).predict(schedules)
        self._run.model, self._run.unit = str(predicted.model), predicted.unit
        return predicted.scores

    def learn(self) -> None:
        """Reports the schedules of the run that were measured, or failed, to the server."""
        tried = [one for one in self._run.ranked if one.nanoseconds is not None or one.failure]
        schedules = [one.schedule for one in tried if one.schedule is not None]
        if schedules:
            self._of(schedules[0]).add(schedules, [_result_of(one) for one in tried])

    def _of(self, schedule: Schedule) -> Experience[Schedule]:
        """Returns the experience of the pipeline, which every schedule of it describes."""
        if self._experience is None:
            arguments = configurations_of, self._kept, self._model
            self._experience = Experience(self._client, graph_of(schedule), *arguments)
        return self._experience


def _result_of(candidate: Candidate) -> Result:
    if candidate.nanoseconds is not None:
        return Result(candidate.nanoseconds * 1e-9)
    return Result(failure=candidate.failure)
