"""What a search measured of one graph, and what a server predicts of further candidates."""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isclose
from typing import Generic, TypeVar

import numpy as np

from hlorank.adapt import Adapt
from hlorank.client import Client
from hlorank.configurations import Configurations
from hlorank.graph import Graph
from hlorank.measurements import GraphMeasurements
from hlorank.model import ModelReference
from hlorank.search.reports import TIMEOUT, Kept, Reports, Result
from hlorank.unit import Unit

T = TypeVar("T")

_SENT = 2000
"""Maximum number of measurements that a call learns from."""
_PENDING = 256
"""Maximum number of pending configurations of a call."""
_SUGGESTED = 64
"""Maximum number of suggestions of a call."""
_PAGES = 10
"""Maximum number of pages that are read of what earlier searches measured."""
_SAME_SCORE = 1e-6
"""Relative difference below which the model cannot tell candidates apart."""


@dataclass(frozen=True)
class Predicted:
    """What a server predicts for candidates."""

    scores: np.ndarray
    """f64 [candidates]; lower is predicted faster"""
    unit: Unit | None
    """``seconds``, or None if scores only order candidates."""
    model: ModelReference | None
    """The model version that predicts; None if none does, but measurements alone."""
    is_learned: bool
    """Whether what was measured of this graph decides, too."""


@dataclass
class Experience(Generic[T]):
    """The measurements of one graph, and what a server says about further candidates.

    Predictions learn from these measurements and from those that the server keeps of earlier
    searches on the same target: of this graph, and of other kernels of its structure. If those
    kernels predict each other well, their word is followed to the end, which finds fast tiles
    sooner than what is learned between rounds. What is measured is then reported at the end, since
    the server would learn from it.
    """

    client: Client
    graph: Graph
    convert: Callable[[Sequence[T]], Configurations]
    """Converts candidates to configurations of the graph."""
    kept: Kept
    model: str | None = None
    """The model that ranks; None for the default of the task."""
    seed: int = 0
    _measured: list[tuple[T, Result]] = field(default_factory=list)
    _reports: Reports = field(init=False)
    _fastest: float = inf
    """Seconds."""
    _since_improvement: int = 0
    """Number of measurements since the fastest one."""
    _follows_pool: bool | None = None
    """Whether other kernels decide; None before the first prediction."""
    _is_known: bool = False
    """Whether earlier searches measured enough of this graph to learn from."""

    def __post_init__(self) -> None:
        self._reports = Reports(self.client, self.graph)

    def add(self, candidates: Sequence[T], results: Sequence[Result]) -> None:
        """Adds measurements, and reports all that are not kept yet, unless other kernels decide.

        A report that fails is repeated with the next measurements. What the harness failed to
        measure is neither learned from nor reported.
        """
        for candidate, result in zip(candidates, results, strict=True):
            if not result.is_measurement:
                continue
            is_fastest = 0 < result.seconds < self._fastest
            self._fastest = result.seconds if is_fastest else self._fastest
            self._since_improvement = 0 if is_fastest else self._since_improvement + 1
            self._measured.append((candidate, result))
        if not self._follows_pool:
            self.report()

    def report(self) -> None:
        """Reports what is not kept yet."""
        self._reports.send(self.kept, self._measured, self._adapt)

    def lessons(self) -> Adapt:
        """Returns the measurements from which the server learns in a call."""
        return self._adapt(() if self._follows_pool else self._measured[-_SENT:])

    def _adapt(self, measured: Sequence[tuple[T, Result]]) -> Adapt:
        candidates = [one for one, _ in measured]
        results = [result for _, result in measured]
        return Adapt(
            self.kept.target,
            self.convert(candidates) if candidates else None,
            [result.seconds for result in results],
            failures=[result.failure for result in results],
            use_stored=True,
        )

    def predict(self, candidates: Sequence[T], timeout: float = TIMEOUT) -> Predicted:
        """Predicts candidates.

        Raises:
            HlorankError: if the call fails.
        """
        ranking = self.client.rank(
            self.graph,
            self.convert(candidates),
            top_k=1,
            model=self.model,
            with_scores=True,
            adapt=self.lessons(),
            timeout=timeout,
        )
        adaptation = ranking.adaptation
        scores = ranking.scores.astype(np.float64)
        if self._follows_pool is None:
            self._follows_pool = bool(adaptation and adaptation.pool and adaptation.pool.used)
            self._is_known = bool(adaptation and adaptation.adapted and not self._measured)
        is_learned = bool(adaptation and adaptation.adapted and not self._follows_pool)
        if ranking.unit == "log_seconds":
            return Predicted(np.exp(scores), "seconds", ranking.model, is_learned)
        return Predicted(scores, ranking.unit, ranking.model, is_learned)

    def kept_measurements(self) -> Iterator[GraphMeasurements]:
        """Returns what the server keeps of this graph on this target, page by page.

        Raises:
            HlorankError: if a call fails, for example because the server keeps nothing.
        """
        after = b""
        graph_hash = self.graph.hash
        for _ in range(_PAGES if graph_hash else 0):
            page = self.client.list_measurements(
                self.kept.target, graph_hash, after=after, timeout=TIMEOUT
            )
            yield from page.graphs
            after = page.next
            if not after:
                return

    def order(
        self, candidates: Sequence[T], count: int, timeout: float = TIMEOUT
    ) -> tuple[list[int], Predicted]:
        """Says in which order to measure candidates, of which ``count`` are measured next.

        Those are the ones that are predicted fastest after what was measured until now. Once there
        is enough to learn from, the last of several is what the server suggests, so that a search
        also tries what it knows little about. If earlier searches measured this graph, all but the
        first are suggestions, which never repeat what the server keeps. Candidates that the model
        cannot tell from an earlier one, or from a measured one, come last.

        Raises:
            HlorankError: if a call fails.
        """
        measured = [candidate for candidate, _ in self._measured]
        every = self.predict([*candidates, *measured], timeout)
        predicted = replace(every, scores=every.scores[: len(candidates)])
        numbers = distinct_first(predicted.scores, every.scores[len(candidates) :])
        if every.is_learned and 1 < count < min(len(candidates), _PENDING):
            first = numbers[: 1 if self._is_known else count - 1]
            suggested = self._suggested(candidates, count - len(first), first)
            numbers = list(dict.fromkeys([*first, *suggested, *numbers]))
        return numbers, predicted

    def _suggested(self, candidates: Sequence[T], count: int, pending: Sequence[int]) -> list[int]:
        suggestions = self.client.suggest(
            self.graph,
            self.convert(candidates),
            adapt=self.lessons(),
            count=min(count, _SUGGESTED),
            pending=pending,
            since_improvement=self._since_improvement,
            seed=self.seed,
            model=self.model,
            timeout=TIMEOUT,
        )
        return suggestions.configs.tolist()


def distinct_first(scores: np.ndarray, seen: Sequence[float] = ()) -> list[int]:
    """Returns the numbers of candidates by score; those with an earlier or seen score come last."""
    known = sorted(seen)
    first = []
    alike = []
    for number in np.argsort(scores, kind="stable").tolist():
        score = float(scores[number])
        place = bisect_left(known, score)
        is_known = any(
            isclose(score, other, rel_tol=_SAME_SCORE)
            for other in known[max(0, place - 1) : place + 1]
        )
        (alike if is_known else first).append(number)
        insort(known, score)
    return first + alike
