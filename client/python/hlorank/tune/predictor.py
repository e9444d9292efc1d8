"""Predictions of a server's model for the candidates of a search."""

from collections.abc import Sequence

import numpy as np

from hlorank.client import Client
from hlorank.errors import DeadlineError, HlorankError, UnavailableError
from hlorank.ranking import KernelTime
from hlorank.tune.problem import Problem
from hlorank.tune.space import Candidates
from hlorank.tune.trace import Trace

_TIMEOUT = 30.0
"""Deadline of a call in seconds."""


class ServerError(HlorankError):
    """The server did not answer, or refused the program or the model, before the search began."""


def server_error(error: HlorankError) -> ServerError:
    """Says what to do about a call that failed before the search began."""
    is_absent = isinstance(error, UnavailableError | DeadlineError)
    what = "no server answers" if is_absent else "the server does not rank this program"
    return ServerError(
        f"{what}: {error}; start a server or choose another "
        "with --server ADDRESS, or search by measurements alone with --without-model"
    )


class Predictor:
    """Scores candidates with the model of a server."""

    def __init__(
        self,
        client: Client,
        problem: Problem,
        model: str | None = None,
        trace: Trace | None = None,
    ):
        """Calls are recorded in ``trace``.

        ``model`` is for example ``layout-xla-cpu@3``; None selects the default of the task.
        """
        self._client, self._problem, self._model = client, problem, model
        self._trace = trace

    def check(self) -> None:
        """Asks the server for one score.

        Raises:
            ServerError: if the call fails.
        """
        try:
            self._rank(self._problem.default[None], _TIMEOUT)
        except HlorankError as error:
            raise server_error(error) from error

    def scores(self, candidates: Candidates, seconds: float = _TIMEOUT) -> np.ndarray:
        """Returns scores f32 [candidates]; lower is predicted faster.

        ``seconds`` is the maximum duration.

        Raises:
            HlorankError: if the call fails.
        """
        if self._trace:
            configurations = self._problem.configurations(candidates)
            self._trace.write(configurations, top_k=1, model=self._model, with_scores=True)
        return self._rank(candidates, seconds)

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
            timeout=_TIMEOUT,
        )
        kernels = dict(zip(ranking.best.tolist(), ranking.kernels, strict=False))
        return [kernels[number] for number in range(len(candidates))]

    def _rank(self, candidates: Candidates, seconds: float) -> np.ndarray:
        configurations = self._problem.configurations(candidates)
        return self._client.rank(
            self._problem.graph,
            configurations,
            top_k=1,
            model=self._model,
            with_scores=True,
            timeout=min(seconds, _TIMEOUT),
        ).scores
