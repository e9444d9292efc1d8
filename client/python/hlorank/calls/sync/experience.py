# Generated from experience.py of ``aio``: change that one.
"""What was measured of one graph, and what a server makes of it.

All adapters, the search of a space and the tuner rest on this class: it decides what is sent with a
call, because the server does not keep it, what is reported, and what happens if the server is away.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import takewhile
from math import inf
from statistics import fmean
from typing import Generic, TypeVar

from hlorank.answers.adaptation import Adaptation, rests_on
from hlorank.answers.leases import Lease
from hlorank.answers.measurements import GraphMeasurements
from hlorank.answers.models import ModelReference, model_reference
from hlorank.answers.ranking import Predicted, Ranking, distinct_first, predicted_of
from hlorank.answers.suggestions import Suggestions, Wanted
from hlorank.calls.fallback import Fallback
from hlorank.calls.kept import Kept
from hlorank.calls.sync.calls import Calls
from hlorank.checks.arguments import instance, seconds, whole_number, wrong
from hlorank.checks.errors import HlorankError, InvalidRequestError, is_no_store
from hlorank.configurations import Configurations
from hlorank.configurations.adapt import Adapt, Result
from hlorank.configurations.config_features import ConfigFeatures
from hlorank.configurations.described import DescribedConfigs
from hlorank.graphs.graph import Graph
from hlorank.wire import defaults
from hlorank.wire.transport import Connected, SyncLock

T = TypeVar("T")
Name = TypeVar("Name")
Answer = TypeVar("Answer")

_PAGES = 10
"""Maximum number of pages that are read of what earlier searches measured."""


class Experience(Connected, Generic[T]):
    """The measurements of one graph on a target, and what a server says about further candidates.

    Predictions learn from these measurements and from those that the server keeps of earlier
    searches on the same target: of this graph, of other instances of its space, and of other
    kernels of its structure. If those kernels predict each other well, their word is followed to
    the end, which finds fast tiles sooner than what is learned between rounds. What is measured is
    then reported at the end, since the server would learn from it.

    >>> experience = Experience(client, graph, Layouts, "my laptop")
    >>> order, _ = experience.order(candidates, 4)
    >>> experience.add(measured, [Result(seconds) for seconds in times])

    With a ``fallback``, no call raises an error of the server: it returns None, and the host goes
    on in its own way until the server is asked again.

    Args:
        client: The server, which needs no model.
        graph: What is tuned.
        convert: Converts candidates to configurations of the graph.
        kept: The target, or what several experiences on it share.
        model: The model that ranks; None for the default of the task.
        seed: Seed of random suggestions.
        other_targets: At most 16 targets whose stored measurements say what to expect on this one.
        all_other_targets: Whether to use all other targets that have measurements of the graph.
        lease: The worker for which suggestions are leased; None if nobody else measures.
        timeout: Deadline of a call; None for the client's.
        fallback: What goes on if the server is away; None if errors are for the caller.

    Raises:
        ArgumentError: if an argument cannot be used; the message names it.
    """

    def __init__(
        self,
        client: Calls,
        graph: Graph,
        convert: Callable[[Sequence[T]], Configurations],
        kept: Kept | str,
        model: ModelReference | str | None = None,
        seed: int = 0,
        *,
        other_targets: Sequence[str] = (),
        all_other_targets: bool = False,
        lease: Lease | None = None,
        timeout: float | None = None,
        fallback: Fallback | None = None,
    ):
        if not callable(getattr(client, "report_measurements", None)):
            raise wrong("client", client, "a client of hlorank")
        self.client = client
        self.graph = instance(graph, Graph, "graph", "a hlorank.Graph")
        self.kept = kept if isinstance(kept, Kept) else Kept(kept)
        self.adaptation: Adaptation | None = None
        """What the last answer rests on; None before any."""
        self.rests_on = ""
        """The same as text, with what the first pick is expected to lose."""
        self.best: tuple[T, float] | None = None
        """The fastest candidate that was added, and its seconds."""
        self.is_lost = False
        """Whether the last call had no answer, so that the host goes on."""
        if not callable(convert):
            raise wrong("convert", convert, "a function of candidates")
        if fallback is not None:
            instance(fallback, Fallback, "fallback", "a Fallback or None")
        self.convert = convert
        self._model = None if model is None else model_reference(model)
        self._seed = Wanted(seed=seed).seed
        self._others = other_targets
        self._all_others = all_other_targets
        self._lease = Wanted(lease=lease).lease
        self._timeout = seconds(timeout, "timeout")
        self._fallback = fallback
        self.measured: list[tuple[T, Result]] = []
        """What was added, in order."""
        self._reported = 0
        self._since_improvement = 0
        """Number of measurements since the fastest one."""
        self._follows_kernels: bool | None = None
        """Whether other kernels decide; None before the first prediction."""
        self._is_known = False
        """Whether earlier searches measured enough of this graph to learn from."""
        # Threads that measure at the same time report at the same time, and each report once.
        self._reporting = SyncLock()
        self.lessons()

    def add(self, candidates: Sequence[T], results: Sequence[Result]) -> HlorankError | None:
        """Adds measurements, and reports all that are not kept yet, unless other kernels decide.

        What the harness failed to measure is neither learned from nor reported. Returns what
        ``report`` returns.

        Raises:
            ArgumentError: if a candidate is none of the graph's; nothing is added then.
        """
        pairs = zip(candidates, results, strict=True)
        measured = [(candidate, result) for candidate, result in pairs if result.is_measurement]
        self._adapt(measured)  # whose checks come before anything is kept
        for candidate, result in measured:
            is_fastest = result.seconds > 0 and (self.best is None or result.seconds < self.best[1])
            if is_fastest:
                self.best = candidate, result.seconds
            self._since_improvement = 0 if is_fastest else self._since_improvement + 1
            self.measured.append((candidate, result))
        return None if self._follows_kernels else self.report()

    def report(self) -> HlorankError | None:
        """Reports what is not kept yet, in parts.

        A report that fails is repeated with the next measurements; ``kept`` says why it failed.
        Returns the error, if there is no fallback.
        """
        with self._reporting:
            while new := self._next_report():
                # A server without a store stays without, and one that is away costs a deadline.
                if self.kept.is_off or (self._fallback is not None and self._fallback.is_away):
                    return None
                try:
                    leases = [result.lease for _, result in new]
                    answer = self.client.report_measurements(
                        self.graph,
                        self._adapt(new),
                        leases=leases if leases[0] else (),
                        search=self._lease.search if self._lease else "",
                        machine=self._lease.machine if self._lease else "",
                        timeout=self._timeout,
                    )
                except HlorankError as error:
                    return self._failed_report(error, len(new))
                self.kept.count(answer.accepted + answer.known)
                self._reported += len(new)
        return None

    def _next_report(self) -> list[tuple[T, Result]]:
        """Returns what to report next; a report has leases for all of its measurements, or none."""
        left = self.measured[self._reported : self._reported + defaults.REPORTED]
        is_leased = bool(left and left[0][1].lease)
        return [*takewhile(lambda pair: bool(pair[1].lease) == is_leased, left)]

    def _failed_report(self, error: HlorankError, measurements: int) -> HlorankError | None:
        self.kept.fail(error)
        if isinstance(error, InvalidRequestError):
            self._reported += measurements  # it would be refused again
        if self._fallback is None:
            return error
        self._fallback.lose(error)
        return None

    @property
    def unreported(self) -> int:
        """Number of measurements that the server does not keep."""
        return len(self.measured) - self._reported

    def lessons(self) -> Adapt:
        """Returns what a call learns from beside what the server keeps: the measurements that it
        does not keep, unless other kernels decide."""
        # What the server keeps it joins itself, so a call stays small however long a search is.
        unkept = self.measured[self._reported :][-defaults.LEARNED :]
        return self._adapt([] if self._follows_kernels else unkept)

    def _adapt(self, measured: Sequence[tuple[T, Result]]) -> Adapt:
        results = [result for _, result in measured]
        return Adapt(
            self.kept.target,
            self.convert([one for one, _ in measured]) if measured else None,
            [result.seconds for result in results],
            [result.repeats for result in results],
            [result.failure for result in results],
            use_stored=not self.kept.is_off,
            other_targets=self._others,
            all_other_targets=self._all_others,
        )

    def rank(
        self,
        configurations: Configurations,
        top_k: int = 0,
        *,
        timeout: float | None = None,
    ) -> Ranking | None:
        """Ranks configurations by what is known."""
        ranking = self._ask(
            lambda: self.client.rank(
                self.graph,
                configurations,
                top_k=top_k,
                model=self._model,
                adapt=self.lessons(),
                timeout=self._timeout if timeout is None else timeout,
            )
        )
        self._learn(ranking)
        return ranking

    def suggest(
        self,
        configurations: Configurations,
        count: int = 1,
        pending: Sequence[int] = (),
        *,
        timeout: float | None = None,
    ) -> list[int] | None:
        """Returns the numbers of the configurations to measure next, at most 64."""
        found = self.suggestions(configurations, count, pending, timeout=timeout)
        return None if found is None else [each.config for each in found.suggestions]

    def suggestions(
        self,
        configurations: Configurations | DescribedConfigs,
        count: int = 1,
        pending: Sequence[int] = (),
        *,
        without_leases: bool = False,
        timeout: float | None = None,
    ) -> Suggestions | None:
        """Returns what to measure next, with its leases."""
        suggestions = self._ask(
            lambda: self.client.suggest(
                self.graph,
                configurations,
                adapt=self.lessons(),
                count=count,
                pending=list(pending)[-defaults.PENDING :],
                since_improvement=self._since_improvement,
                seed=self._seed,
                lease=None if without_leases else self._lease,
                model=self._model,
                timeout=self._timeout if timeout is None else timeout,
            )
        )
        self._learn(suggestions)
        return suggestions

    def _learn(self, answer: Ranking | Suggestions | None) -> None:
        if answer is not None:
            self.adaptation = answer.adaptation
            self.rests_on = rests_on(answer.adaptation, answer.confidence, answer.warnings)

    def predict(self, candidates: Sequence[T], timeout: float | None = None) -> Predicted | None:
        """Predicts candidates.

        Raises:
            HlorankError: if the call fails, and there is no fallback.
        """
        ranking = self.rank(self.convert(candidates), timeout=timeout)
        if ranking is None:
            return None
        predicted = predicted_of(ranking)
        # Decided once: a search that changes its guide halfway measures what neither would.
        if self._follows_kernels is None:
            sources = () if ranking.adaptation is None else ranking.adaptation.sources
            self._follows_kernels = any(each.kind == "kernels" and each.used for each in sources)
            self._is_known = predicted.is_learned and not self.measured
        return replace(predicted, is_learned=predicted.is_learned and not self._follows_kernels)

    def order(
        self, candidates: Sequence[T], count: int, timeout: float | None = None
    ) -> tuple[list[int], Predicted] | None:
        """Says in which order to measure candidates, of which ``count`` are measured next.

        Those are the ones that are predicted fastest after what was measured until now. Once there
        is enough to learn from, the last of several is what the server suggests, so that a search
        also tries what it knows little about. If earlier searches measured this graph, all but the
        first are suggestions, which never repeat what the server keeps. Candidates that the model
        cannot tell from an earlier one, or from a measured one, come last.

        Raises:
            HlorankError: if a call fails, and there is no fallback.
        """
        whole_number(count, "count")
        measured = [candidate for candidate, _ in self.measured]
        every = self.predict([*candidates, *measured], timeout)
        if every is None:
            return None
        predicted = replace(every, scores=every.scores[: len(candidates)])
        numbers = distinct_first(predicted.scores, every.scores[len(candidates) :])
        if every.is_learned and 1 < count < min(len(candidates), defaults.PENDING):
            first = numbers[: 1 if self._is_known else count - 1]
            wanted = min(count - len(first), defaults.SUGGESTED)
            suggested = self.suggest(self.convert(candidates), wanted, first)
            numbers = list(dict.fromkeys([*first, *(suggested or ()), *numbers]))
        return numbers, predicted

    def kept_measurements(self, *, of_all: bool = False) -> list[GraphMeasurements] | None:
        """Returns what the server keeps of this graph on this target, or of all graphs.

        Raises:
            HlorankError: if a call fails, such as of a server that keeps nothing, and there is no
                fallback.
        """
        return self._ask(lambda: self._pages(of_all))

    def kept_times(
        self, names: Callable[[ConfigFeatures], Sequence[Name | None]]
    ) -> dict[Name, float | None]:
        """Returns the mean seconds of what the server keeps, by name, the fastest first; None of
        what failed. ``names`` returns that of each configuration; None to leave it out."""
        return mean_times(self.kept_measurements() or (), names)

    def _pages(self, of_all: bool) -> list[GraphMeasurements]:
        graph_hash = b"" if of_all else self.graph.hash
        # Measurements are listed by hash, which only the server computes.
        if graph_hash is None:
            graph_hash = (self.client.put_graph(self.graph, timeout=self._timeout)).hash
        return kept_of(self.client, self.kept.target, graph_hash, _PAGES, self._timeout)

    def _ask(self, call: Callable[[], Answer]) -> Answer | None:
        """Makes a call. With a fallback, there is no answer while the server is away."""
        if self._fallback is None:
            return call()
        # Other experiences share the fallback, and one deadline is enough for all of them.
        self.is_lost = self._fallback.is_away
        if self.is_lost:
            return None
        try:
            return call()
        except HlorankError as error:
            self._fallback.lose(error)
            self.kept.is_off = self.kept.is_off or is_no_store(error)
            self.is_lost = not is_no_store(error)
            return None


def mean_times(
    measured: Iterable[GraphMeasurements], names: Callable[[ConfigFeatures], Sequence[Name | None]]
) -> dict[Name, float | None]:
    """Returns mean seconds by name, the fastest first; None of what failed."""
    times: dict[Name, list[float]] = {}
    for kept in measured:
        if isinstance(kept.configurations, ConfigFeatures):
            each = zip(names(kept.configurations), kept.seconds.tolist(), strict=True)
            for name, seconds in each:
                if name is not None:
                    times.setdefault(name, []).extend([seconds] if seconds > 0 else [])
    means = {name: fmean(own) if own else None for name, own in times.items()}
    return dict(sorted(means.items(), key=lambda pair: pair[1] or inf))


def kept_of(
    client: Calls, target: str, graph_hash: bytes, most: float, timeout: float | None
) -> list[GraphMeasurements]:
    """Returns the measurements of a graph, or of all, that a server keeps: ``most`` pages."""
    found: list[GraphMeasurements] = []
    after, pages = b"", 0
    while pages < most:
        page = client.list_measurements(target, graph_hash, after=after, timeout=timeout)
        found += page.graphs
        after, pages = page.next, pages + 1
        if not after:
            break
    return found
