"""The server of a search, and what its model predicts of the candidates of a subject."""

import platform
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from operator import itemgetter
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
from hlorank.wire.defaults import TARGET_BYTES, TIMEOUT
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


_OTHERS = 3
"""Number of other programs whose fastest candidates a search begins with."""

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

    def learn(self, candidates: Sequence[C], outcomes: Sequence[Outcome]) -> None:
        """Learns from measured candidates, and reports them to the server."""
        known = [i for i, candidate in enumerate(candidates) if self._subject.is_ranked(candidate)]
        results = [_result_of(outcomes[i]) for i in known]
        self._experience.add([candidates[i] for i in known], results)

    def finish(self) -> None:
        """Reports what was not reported yet, at the end of a search."""
        self._experience.report()

    def earlier(self) -> list[C]:
        """Returns the fastest candidate that earlier searches measured, and of candidates that
        programs share those that gained most for others; none without a store."""
        times: dict[bytes, dict[Hashable, tuple[float, C]]] = {}
        try:
            every = self._experience.kept_measurements()
            if self._subject.is_shared:
                every = [*every, *self._experience.kept_measurements(of_all=True)]
            for kept in every:
                of_graph = times.setdefault(kept.graph_hash, {})
                read = self._subject.candidates(kept.configurations)
                for candidate, seconds in zip(read, kept.seconds.tolist(), strict=True):
                    if candidate is not None and seconds > 0:
                        key = self._subject.key(candidate)
                        if key not in of_graph or seconds < of_graph[key][0]:
                            of_graph[key] = seconds, candidate
        except HlorankError:
            # Without them, the search begins as if there were none.
            return []
        assert self._subject.graph is not None
        own = times.pop(self._subject.graph.hash or b"", {})
        default = self._subject.key(self._subject.default)
        gains = []
        for of_graph in times.values():
            if default in of_graph:
                seconds, candidate = min(of_graph.values(), key=itemgetter(0))
                gains.append((seconds / of_graph[default][0], candidate))
        gains.sort(key=itemgetter(0))
        fastest = [min(own.values(), key=itemgetter(0))] if own else []
        return [candidate for _, candidate in [*fastest, *gains[:_OTHERS]]]

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
