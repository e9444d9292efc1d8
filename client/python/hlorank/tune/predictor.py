"""Predictions of a server's model for the candidates of a search."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hlorank.client import Client
from hlorank.configurations import Configurations
from hlorank.errors import HlorankError
from hlorank.ranking import KernelTime
from hlorank.search import Experience, Kept, Result
from hlorank.search.connection import server_error
from hlorank.search.reports import TIMEOUT
from hlorank.tune.hardware import Outcome
from hlorank.tune.problem import Problem
from hlorank.tune.space import Candidates
from hlorank.tune.trace import Trace
from hlorank.unit import Unit


class Chosen(NamedTuple):
    """Candidates to measure next, the most promising first."""

    candidates: Candidates
    scores: Sequence[float | None]
    """None without a prediction."""
    unit: Unit | None
    """``seconds``, or None if scores only order candidates."""


class Predictor:
    """Predicts candidates with the model of a server, which learns from what was measured."""

    def __init__(
        self,
        client: Client,
        problem: Problem,
        kept: Kept,
        model: str | None = None,
        seed: int = 0,
        trace: Trace | None = None,
    ):
        """Predictions are recorded in ``trace``.

        ``model`` is for example ``layout-xla-cpu@3``; None selects the default of the task.
        """
        self._client, self._problem, self._model = client, problem, model
        self._trace = trace
        self._experience: Experience[np.ndarray] = Experience(
            client, problem.graph, self._convert, kept, model, seed
        )

    def check(self) -> None:
        """Asks the server for one prediction.

        Raises:
            ServerError: if the call fails.
        """
        try:
            self._experience.predict(self._problem.default[None])
        except HlorankError as error:
            raise server_error(error) from error

    def scores(self, candidates: Candidates, seconds: float = TIMEOUT) -> np.ndarray:
        """Returns scores f64 [candidates]; lower is predicted faster.

        ``seconds`` is the maximum duration.

        Raises:
            HlorankError: if the call fails.
        """
        if self._trace:
            configurations = self._problem.configurations(candidates)
            lessons = self._experience.lessons()
            self._trace.write(
                configurations, top_k=1, model=self._model, with_scores=True, adapt=lessons
            )
        return self._experience.predict(candidates, min(seconds, TIMEOUT)).scores

    def choose(self, candidates: Candidates, count: int, seconds: float = TIMEOUT) -> Chosen:
        """Says which of the candidates, none of which was measured, to measure next.

        Raises:
            HlorankError: if the call fails.
        """
        if not len(candidates):
            return Chosen(candidates, [], None)
        order, predicted = self._experience.order(candidates, count, min(seconds, TIMEOUT))
        numbers = order[:count]
        return Chosen(candidates[numbers], predicted.scores[numbers].tolist(), predicted.unit)

    def learn(self, candidates: Candidates, outcomes: Sequence[Outcome]) -> None:
        """Learns from measured candidates, and reports them to the server."""
        known = [i for i, candidate in enumerate(candidates) if self._problem.is_ranked(candidate)]
        results = [_result_of(outcomes[i]) for i in known]
        self._experience.add([candidates[i] for i in known], results)

    def finish(self) -> None:
        """Reports what was not reported yet, at the end of a search."""
        self._experience.report()

    def earlier(self) -> Candidates:
        """Returns the fastest candidate that earlier searches measured; none without a store."""
        fastest, least = self._problem.default[None][:0], np.inf
        try:
            for kept in self._experience.kept_measurements():
                seconds = np.where(kept.seconds > 0, kept.seconds, np.inf)
                read = self._problem.candidates(kept.configurations)
                if len(read) and seconds.min() < least:
                    fastest, least = read[[seconds.argmin()]], seconds.min()
        except HlorankError:
            # Without it, the search begins as if there were none.
            pass
        return fastest

    def kernels(self, candidates: Candidates) -> list[Sequence[KernelTime]]:
        """Returns the kernels of each candidate, a choice of fusions.

        Raises:
            HlorankError: if the call fails.
        """
        ranking = self._client.rank(
            self._problem.graph,
            self._problem.configurations(candidates),
            model=self._model,
            explain_top=len(candidates),
            timeout=TIMEOUT,
        )
        kernels = dict(zip(ranking.best.tolist(), ranking.kernels, strict=False))
        return [kernels[number] for number in range(len(candidates))]

    def _convert(self, candidates: Sequence[np.ndarray]) -> Configurations:
        return self._problem.configurations(np.array(candidates))


def _result_of(outcome: Outcome) -> Result:
    if outcome.nanoseconds:
        return Result(outcome.nanoseconds * 1e-9)
    return Result(failure=outcome.failure)
