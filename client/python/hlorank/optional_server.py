"""A server that remembers what a tuner measured, and that the tuner can do without."""

import warnings
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, islice, zip_longest
from math import inf
from statistics import fmean
from threading import RLock
from time import monotonic
from typing import Any, TypeVar

from hlorank import (
    Adapt,
    Client,
    ConfigFeatures,
    DeadlineError,
    Graph,
    HlorankError,
    OverloadedError,
    Space,
    UnavailableError,
)
from hlorank.arguments import seconds, whole_number
from hlorank.tuner_rows import Outcome, Row, distinct, instance_of, key_of, name_of

_Answer = TypeVar("_Answer")
_Times = dict[tuple[tuple[str, float], ...], float]
"""The seconds of rows; infinity for those that failed."""

_PAUSE = 60.0
"""Seconds without calls after the server was away, so that a tuner does not wait for each."""
_UNSENT_REPORTS = 1_000
"""Maximum number of reports that are kept for a server that is away; the oldest are dropped."""
_AWAY = (UnavailableError, DeadlineError, OverloadedError)


class OptionalServer:
    """What the adapters of tuners share; threads may share one.

    If the server is away, there is one warning, and it is asked again after a minute.

    Args:
        client: A client of the server, which needs no model but has to keep measurements.
        target: What run times are measured on: hardware, compiler and flags. Never mix targets.
        top_k: How many configurations of a space to propose.
        other_targets: At most 16 targets whose stored measurements say what to expect on this one.
        all_other_targets: Whether to use all other targets that have measurements.
        timeout: Maximum seconds of a call, retries included.

    Raises:
        ArgumentError: if an argument cannot be used; the message names it.
    """

    def __init__(
        self,
        client: Client,
        target: str,
        *,
        top_k: int = 16,
        other_targets: Sequence[str] = (),
        all_other_targets: bool = False,
        timeout: float = 2.0,
    ):
        self._client = client
        self._target = target
        self._top_k = whole_number(top_k, "top_k", least=1)
        self._timeout = seconds(timeout, "timeout")
        self._stored = Adapt(
            target,
            use_stored=True,
            other_targets=other_targets,
            all_other_targets=all_other_targets,
        )
        self._unsent: deque[tuple[Any, ...]] = deque(maxlen=_UNSENT_REPORTS)
        self._away_until: float | None = None
        self._has_warned = False
        self._turn = RLock()

    def best(self, name: str, instance: str, rows: Sequence[Row]) -> list[int]:
        """Returns the numbers of at most ``top_k`` rows, fastest first; none if nothing is known.

        Every other one is the next of those measured, and the others are the next of those
        predicted. Equal rows count once.

        Args:
            name: The name of the space.
            instance: What is tuned, if it is one of several with this space.
            rows: The configurations, all with the same parameters.
        """
        return self._answer(lambda: self._best(name, instance, rows)) or []

    def report(self, name: str, instance: str, measured: Iterable[tuple[Row, Outcome]]) -> None:
        """Reports what came of measuring rows; if the server is away, with a later report."""
        pairs = list(measured)
        if pairs:
            self._unsent.append((name, instance, pairs))
        self.flush()

    def flush(self) -> int:
        """Sends the reports that were not sent yet; returns how many are left."""
        with self._turn:
            while self._unsent:
                self._answer(lambda: self._send(*self._unsent[0]))
                if self._away_until is not None:
                    break
                self._unsent.popleft()
            return len(self._unsent)

    def measured(
        self, name: str, instance: str, parameters: Iterable[str]
    ) -> list[dict[str, float]]:
        """Returns the rows of a space that ran on the target, fastest first."""
        graph = Graph.from_feature_set(
            name_of(name), config_columns=sorted(parameters), instance=instance_of(instance)
        )
        times = self._answer(lambda: self._times(graph, sorted(parameters))) or {}
        return [dict(row) for row in sorted(times, key=times.__getitem__) if times[row] < inf]

    def _best(self, name: str, instance: str, rows: Sequence[Row]) -> list[int]:
        places = distinct(rows)
        space = _space(name, instance, [rows[place] for place in places])
        ranking = self._client.rank(
            space.graph,
            space.configurations(),
            top_k=2 * self._top_k,
            adapt=self._stored,
            timeout=self._timeout,
        )
        if ranking.adaptation is None or not ranking.adaptation.rests_on:
            return []
        known = self._times(space.graph, sorted(space.parameters))
        times = {
            place: known[key_of(rows[place])] for place in places if key_of(rows[place]) in known
        }
        predicted = [places[number] for number in ranking.best]
        # What is learned may smooth over a row that is fast for no visible reason.
        order = chain.from_iterable(zip_longest(sorted(times, key=times.__getitem__), predicted))
        ran = (place for place in order if place is not None and times.get(place) != inf)
        return list(islice(dict.fromkeys(ran), self._top_k))

    def _send(self, name: str, instance: str, pairs: Sequence[tuple[Row, Outcome]]) -> None:
        rows = [row for row, _ in pairs]
        outcomes = [outcome for _, outcome in pairs]
        space = _space(name, instance, [rows[place] for place in distinct(rows)])
        measurements = Adapt(
            self._target,
            space.configurations(rows),
            [0.0 if isinstance(each, str) else each for each in outcomes],
            failures=[each if isinstance(each, str) else None for each in outcomes],
        )
        self._client.report_measurements(space.graph, measurements, timeout=self._timeout)

    def _times(self, graph: Graph, columns: Sequence[str]) -> _Times:
        """Returns the mean time of each row that was measured on the target."""
        graph_hash = graph.hash or self._client.put_graph(graph, timeout=self._timeout).hash
        times: dict[Any, list[float]] = {}
        after: bytes | None = b""
        while after is not None:
            page = self._client.list_measurements(
                self._target, graph_hash, after=after, timeout=self._timeout
            )
            for each in page.graphs:
                if isinstance(each.configurations, ConfigFeatures):
                    rows = each.configurations.values()[:, 0, :].tolist()
                    for row, time in zip(rows, each.seconds.tolist(), strict=True):
                        ran = [time] if time > 0 else []
                        times.setdefault(tuple(zip(columns, row, strict=True)), []).extend(ran)
            after = page.next or None
        return {row: fmean(each) if each else inf for row, each in times.items()}

    def _answer(self, call: Callable[[], _Answer]) -> _Answer | None:
        with self._turn:
            if self._away_until is not None and monotonic() < self._away_until:
                return None
            self._away_until = None
            try:
                return call()
            except HlorankError as error:
                if isinstance(error, _AWAY):
                    self._away_until = monotonic() + _PAUSE
                self._warn(error)
                return None

    def _warn(self, error: HlorankError) -> None:
        if not self._has_warned:
            self._has_warned = True
            warnings.warn(f"hlorank: {error}; tuning goes on without it", stacklevel=3)


def _space(name: str, instance: str, rows: Sequence[Row]) -> Space:
    return Space.from_configs(name_of(name), rows, instance=instance_of(instance))
