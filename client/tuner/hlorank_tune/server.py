"""The server of a search, and what its model predicts of the candidates of a subject."""

import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from hlorank import (
    Client,
    DeadlineError,
    Experience,
    HandshakeError,
    HlorankError,
    Kept,
    KernelTime,
    Result,
    UnavailableError,
    Unit,
)
from hlorank.configurations.described import DescribedConfigs
from hlorank.wire.defaults import TARGET_BYTES, TIMEOUT
from hlorank.wire.messages import ConfigSpace
from hlorank_tune.subject import Outcome, Subject


def default_target(compiler: str, threads: int = 1) -> str:
    """Names this machine's processor, a compiler with its version, and the threads of a program.

    ``threads`` is 0 for as many as the compiler uses.
    """
    counted = {0: "all threads", 1: "1 thread"}.get(threads, f"{threads} threads")
    name = f"{processor()}, {compiler}, {counted}"
    return name.encode()[:TARGET_BYTES].decode(errors="ignore")


def processor() -> str:
    """Returns the processor's model name, or its architecture if the name is unknown."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            names = [
                line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")
            ]
        return names[0]
    except (OSError, IndexError):
        return platform.processor() or platform.machine()


_SECONDS = 5.0
"""How long a server may take to answer at all, before the search begins."""


class ServerError(HlorankError):
    """The server did not answer, or refused the program or the model, before the search began."""


def server_error(error: HlorankError) -> ServerError:
    """Says what to do about a call that failed before the search began."""
    if isinstance(error, HandshakeError):
        return ServerError(str(error))
    is_absent = isinstance(error, UnavailableError | DeadlineError)
    what = "no server answers" if is_absent else "the server does not rank this program"
    return ServerError(
        f"{what}: {error}; start a server or choose another "
        "with --endpoint ADDRESS, or search by measurements alone with --without-model"
    )


def absence(client: Client) -> HlorankError | None:
    """Returns the error of a server that does not answer within five seconds; None if it does."""
    try:
        client.list_models(timeout=_SECONDS)
    except (UnavailableError, DeadlineError) as error:
        return error
    except HlorankError:
        # There is a server; the first prediction shows whether the error matters.
        pass
    return None


@contextmanager
def connected(server: str | Client | None) -> Iterator[Client | None]:
    """Yields a client of a server that answers; one that the caller passed stays open.

    Raises:
        ServerError: if none answers within five seconds; later calls have more time.
    """
    if server is None:
        yield None
        return
    with Client(server) if isinstance(server, str) else nullcontext(server) as client:
        error = absence(client)
        if error is not None:
            raise server_error(error) from error
        yield client


_SCREENED = 16
"""Measurements before a server suggests: until then, random draws find more than changes of the
default, and than what it knows of other programs."""

C = TypeVar("C")


class Chosen(NamedTuple):
    """Candidates to measure next, the most promising first."""

    candidates: Sequence[Any]
    scores: Sequence[float | None]
    """None without a prediction."""
    unit: Unit | None
    """``seconds``, or None if scores only order candidates."""


class Predictor(Generic[C]):
    """Predicts candidates with the model of a server, which learns from what was measured."""

    def __init__(
        self, client: Client, kept: Kept, model: str | None, seed: int, subject: Subject[C]
    ):
        """``kept`` is what the server keeps of the measurements, and ``model`` the one that ranks;
        None for the default of the task. ``seed`` is that of random suggestions."""
        assert subject.graph is not None
        self._client = client
        self._model = model
        self._subject = subject
        self._experience: Experience[C] = Experience(
            client, subject.graph, subject.configurations, kept, model, seed
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

    def drawn(self, described: ConfigSpace, count: int, seconds: float = TIMEOUT) -> Chosen:
        """Returns what the server draws from a space; nothing as long as too little is known.

        Raises:
            HlorankError: if the call fails.
        """
        asked = DescribedConfigs(described)
        found = self._experience.suggestions(asked, count, timeout=min(seconds, TIMEOUT))
        adaptation = found.adaptation
        if found.combinations is None or adaptation is None:
            return Chosen([], [], None)
        if adaptation.measured_configs < _SCREENED:
            return Chosen([], [], None)
        candidates = self._subject.candidates(found.combinations)
        scores = [each.score for each in found.suggestions]
        is_seconds = all(each.predicted_seconds > 0 for each in found.suggestions)
        if is_seconds:
            scores = [each.predicted_seconds for each in found.suggestions]
        return Chosen(candidates, scores, "seconds" if is_seconds else None)

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
        ranking = self._client.rank(
            self._subject.graph,
            self._subject.configurations(candidates),
            model=self._model,
            explain_top=len(candidates),
            timeout=TIMEOUT,
        )
        kernels = dict(zip(ranking.best.tolist(), ranking.kernels, strict=False))
        return [kernels[number] for number in range(len(candidates))]


def _result_of(outcome: Outcome) -> Result:
    if outcome.nanoseconds:
        return Result(outcome.nanoseconds * 1e-9)
    return Result(failure=outcome.failure)
