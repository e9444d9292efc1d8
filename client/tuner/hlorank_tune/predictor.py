"""Predictions of a server's model for the candidates of a subject."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from hlorank import Client, Experience, HlorankError, Kept, KernelTime, Result, Unit
from hlorank.wire.defaults import TIMEOUT
from hlorank_tune.outcome import Outcome
from hlorank_tune.server import server_error
from hlorank_tune.subject import Subject

C = TypeVar("C")


class Chosen(NamedTuple):
    """Candidates to measure next, the most promising first."""

    candidates: Sequence[Any]
    scores: Sequence[float | None]
    """None without a prediction."""
    unit: Unit | None
    """``seconds``, or None if scores only order candidates."""


@dataclass(frozen=True)
class Server:
    """The server that a search asks."""

    client: Client
    kept: Kept
    """What the server keeps of the measurements."""
    model: str | None = None
    """For example ``layout-xla-cpu@3``; None for the default of the task."""
    seed: int = 0
    """Of random suggestions."""


class Predictor(Generic[C]):
    """Predicts candidates with the model of a server, which learns from what was measured."""

    def __init__(self, server: Server, subject: Subject[C]):
        assert subject.graph is not None
        self._server = server
        self._subject = subject
        self._experience: Experience[C] = Experience(
            server.client,
            subject.graph,
            subject.configurations,
            server.kept,
            server.model,
            server.seed,
        )

    def check(self) -> None:
        """Asks the server for one prediction.

        Raises:
            ServerError: if the call fails.
        """
        try:
            self._experience.predict([self._subject.default])
        except HlorankError as error:
            raise server_error(error) from error

    def scores(self, candidates: Sequence[C], seconds: float = TIMEOUT) -> np.ndarray:
        """Returns scores f64 [candidates]; lower is predicted faster.

        ``seconds`` is the maximum duration.

        Raises:
            HlorankError: if the call fails.
        """
        return self._experience.predict(candidates, min(seconds, TIMEOUT)).scores

    def choose(self, candidates: Sequence[C], count: int, seconds: float = TIMEOUT) -> Chosen:
        """Says which of the candidates, none of which was measured, to measure next.

        Raises:
            HlorankError: if the call fails.
        """
        if not len(candidates):
            return Chosen(candidates, [], None)
        order, predicted = self._experience.order(candidates, count, min(seconds, TIMEOUT))
        numbers = order[:count]
        chosen = [candidates[number] for number in numbers]
        return Chosen(chosen, predicted.scores[numbers].tolist(), predicted.unit)

    def learn(self, candidates: Sequence[C], outcomes: Sequence[Outcome]) -> None:
        """Learns from measured candidates, and reports them to the server."""
        known = [i for i, candidate in enumerate(candidates) if self._subject.is_ranked(candidate)]
        results = [_result_of(outcomes[i]) for i in known]
        self._experience.add([candidates[i] for i in known], results)

    def finish(self) -> None:
        """Reports what was not reported yet, at the end of a search."""
        self._experience.report()

    def earlier(self) -> Sequence[C]:
        """Returns the fastest candidate that earlier searches measured; none without a store."""
        fastest: Sequence[C] = ()
        least = np.inf
        try:
            for kept in self._experience.kept_measurements():
                seconds = np.where(kept.seconds > 0, kept.seconds, np.inf)
                read = self._subject.candidates(kept.configurations)
                if len(read) and seconds.min() < least:
                    fastest = [read[int(seconds.argmin())]]
                    least = seconds.min()
        except HlorankError:
            # Without it, the search begins as if there were none.
            pass
        return fastest

    def kernels(self, candidates: Sequence[C]) -> list[Sequence[KernelTime]]:
        """Returns the kernels of each candidate, a choice of fusions.

        Raises:
            HlorankError: if the call fails.
        """
        assert self._subject.graph is not None
        ranking = self._server.client.rank(
            self._subject.graph,
            self._subject.configurations(candidates),
            model=self._server.model,
            explain_top=len(candidates),
            timeout=TIMEOUT,
        )
        kernels = dict(zip(ranking.best.tolist(), ranking.kernels, strict=False))
        return [kernels[number] for number in range(len(candidates))]


class Predictors:
    """The predictors of the subjects of a search; what is learned of one stays with it."""

    def __init__(self, server: Server):
        self._server = server
        self._known: dict[str, Predictor[Any]] = {}

    def __call__(self, subject: Subject[Any]) -> Predictor[Any]:
        """Returns the predictor of a subject that has a graph."""
        if subject.name not in self._known:
            self._known[subject.name] = Predictor(self._server, subject)
        return self._known[subject.name]


def _result_of(outcome: Outcome) -> Result:
    if outcome.nanoseconds:
        return Result(outcome.nanoseconds * 1e-9)
    return Result(failure=outcome.failure)
