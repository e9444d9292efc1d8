# Generated from calls.py of ``aio``: change that one.
"""The calls of a server, one method each."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Self, TypeVar

import grpc
from google.protobuf.message import Message

from hlorank.answers.checked import Asked, check_model
from hlorank.answers.decisions import (
    DecideAnswer,
    Decision,
    DecisionKey,
    DecisionsPage,
    Evidence,
    decide_answer_of,
    decisions_page_of,
)
from hlorank.answers.leases import (
    GrantedLease,
    Lease,
    LeaseState,
    lease_states_of,
    renewal,
)
from hlorank.answers.measurements import (
    HASH_HINT,
    MeasurementsPage,
    Reported,
    checked_hash,
    checked_time,
    page_of,
)
from hlorank.answers.models import (
    Comparison,
    Model,
    ModelReference,
    comparison_of,
    model_of,
    model_reference,
)
from hlorank.answers.ranking import CachedGraph, Ranking, cached_graph_of, checked_graph_hash
from hlorank.answers.suggestions import Source, Suggestions, Wanted, suggestions_of
from hlorank.calls.sync.stream import RankStream, next_part
from hlorank.checks.arguments import (
    U64,
    content,
    flag,
    instance,
    seconds,
    several,
    text,
    whole_number,
)
from hlorank.checks.errors import AnswerError, ArgumentError, PreconditionError, RefusedError
from hlorank.configurations import Configurations
from hlorank.configurations.adapt import Adapt
from hlorank.configurations.batch import Batch
from hlorank.configurations.described import DescribedConfigs
from hlorank.graphs.graph import ROUTE_HEADER, Graph
from hlorank.wire import defaults, messages
from hlorank.wire.address import authorization, channel_credentials, host_and_port
from hlorank.wire.durations import set_seconds
from hlorank.wire.retry import Attempts, Deadline, Retry
from hlorank.wire.transport import Channel, Connected, Metadata, Method, SyncTransport

T = TypeVar("T")
Response = TypeVar("Response", bound=Message)

_NOT_CACHED = "GRAPH_NOT_CACHED"
_UNKNOWN_BATCH = "UNKNOWN_BATCH"
_CONFIGURATIONS = "Layouts, Tiles, Fusions or ConfigFeatures of the graph"

_RANK = Method("CostModelService/RankConfigs", messages.RankConfigsResponse)
_STREAM = Method("CostModelService/RankConfigsStream", messages.RankConfigsStreamResponse)
_SUGGEST = Method("CostModelService/SuggestConfigs", messages.SuggestConfigsResponse)
_PUT_GRAPH = Method("CostModelService/PutGraph", messages.PutGraphResponse)
_REPORT = Method("CostModelService/ReportMeasurements", messages.ReportMeasurementsResponse)
_LIST = Method("CostModelService/ListMeasurements", messages.ListMeasurementsResponse)
_GET_GRAPH = Method("CostModelService/GetMeasuredGraph", messages.GetMeasuredGraphResponse)
_DELETE = Method("CostModelService/DeleteMeasurements", messages.DeleteMeasurementsResponse)
_RENEW = Method("CostModelService/RenewLeases", messages.RenewLeasesResponse)
_DECIDE = Method("CostModelService/Decide", messages.DecideResponse)
_DECISIONS = Method("CostModelService/ListDecisions", messages.ListDecisionsResponse)
_MODELS = Method("ModelService/ListModels", messages.ListModelsResponse)
_MODEL = Method("ModelService/GetModel", messages.GetModelResponse)
_COMPARE = Method("ModelService/CompareModels", messages.CompareModelsResponse)


class Calls(Connected):
    """A connection and its calls; ``AsyncClient`` adds the searches."""

    def __init__(
        self,
        address: str,
        *,
        timeout: float | None = defaults.TIMEOUT,
        connect_timeout: float = defaults.CONNECT_TIMEOUT,
        retries: int | None = None,
        message_bytes: int = defaults.MESSAGE_BYTES,
        credentials: grpc.ChannelCredentials | None = None,
        token: str | None = None,
        target: str = "",
    ):
        host = host_and_port(address)
        secured = channel_credentials(address, credentials)
        headers = authorization(token)
        self._retry = Retry(None if retries is None else whole_number(retries, "retries"))
        # gRPC's option has 32 bits.
        self._message_bytes = whole_number(message_bytes, "message_bytes", 1, (1 << 31) - 1)
        channel = Channel.of(host, secured, headers, connect_timeout, self._message_bytes)
        self._timeout = seconds(timeout, "timeout")
        self._target = text(target, "target")
        # Last, so that a wrong argument leaves no channel behind.
        self._transport = SyncTransport(channel)

    def put_graph(self, graph: Graph, *, timeout: float | None = None) -> CachedGraph:
        """Sends a graph to the server's cache; returns its hash, sizes and configurable nodes."""
        _check_graph(graph)
        request = messages.PutGraphRequest(graph=graph.whole())
        cached = cached_graph_of(self._ask(_PUT_GRAPH, request, timeout, _routed(graph)))
        graph.learn(cached.hash)
        return cached

    def rank(
        self,
        graph: Graph,
        configurations: Configurations,
        *,
        top_k: int = 0,
        model: ModelReference | str | None = None,
        with_scores: bool = False,
        allow_partial: bool = False,
        adapt: Adapt | None = None,
        explain_top: int = 0,
        timeout: float | None = None,
    ) -> Ranking:
        """Ranks configurations.

        The request contains the graph's hash if the client knows it, and the graph itself if not,
        or if the server no longer has it.

        Args:
            graph: The graph.
            configurations: Its candidates.
            top_k: Length of the ranking; 0 for all configurations.
            model: For example ``layout-xla-cpu``, ``layout-xla-cpu@3`` or
                ``layout-xla-cpu@canary``; None for the model of the task, or of the
                graph's feature set, that was trained for the target, or else the default.
            with_scores: Whether to return the score of every configuration.
            allow_partial: Whether to rank only the first configurations if ``timeout`` is too
                short for all; ``Ranking.scored`` is their number.
            adapt: Measured run times of the graph's configurations, from which the server learns
                for this call: scores are then predicted logarithms of seconds.
            explain_top: For how many of the first configurations of the ranking to return the
                kernels, at most 16. Only fusions have kernels.
            timeout: Deadline in seconds; None for the client's.

        Raises:
            RefusedError: if the call ends with an error status.
        """
        _check_graph(graph)
        instance(configurations, Batch, "configurations", _CONFIGURATIONS)
        asked = Asked(
            len(configurations),
            graph.task,
            whole_number(top_k, "top_k"),
            flag(with_scores, "with_scores"),
            flag(allow_partial, "allow_partial"),
            whole_number(explain_top, "explain_top"),
        )
        selector = self._selector(model)
        measured = _adapt_message(adapt)

        # Called once, or twice if the server has forgotten the graph.
        def request(source: messages.Graph) -> bytes:
            head = messages.RankConfigsRequest(
                graph=source,
                model=selector,
                top_k=asked.top_k,
                include_scores=asked.with_scores,
                allow_partial=asked.allow_partial,
                adapt=measured,
                explain_top=asked.explain_top,
            )
            # Concatenated messages are parsed as their merger, and the second one is kept.
            return head.SerializeToString() + configurations.serialized

        answer = self._ask_about(graph, _RANK, request, self._deadline(timeout))
        asked.check(answer)
        scores = answer.scores if asked.with_scores else None
        ranking = Ranking(answer, scores)
        graph.learn(ranking.graph_hash)
        return ranking

    def suggest(
        self,
        graph: Graph,
        candidates: Configurations | DescribedConfigs,
        *,
        adapt: Adapt | None = None,
        count: int = 1,
        pending: Sequence[int] = (),
        since_improvement: int = 0,
        seed: int = 0,
        source: Source = "candidates",
        lease: Lease | None = None,
        model: ModelReference | str | None = None,
        timeout: float | None = None,
    ) -> Suggestions:
        """Proposes which candidates to measure next.

        Args:
            graph: The graph.
            candidates: What to choose from; what ``adapt`` contains is not suggested again. Of
                those that are described, the answer has what it suggests as ``combinations``.
            adapt: What was measured until now. Before three measurements, the model's ranking
                decides.
            count: Number of suggestions, at most 64.
            pending: Numbers of candidates that are being measured, at most 256.
            since_improvement: Number of measurements since the fastest one. After every fifth,
                the suggestion is a random one.
            seed: Seed of random suggestions.
            source: Where suggestions come from: the candidates themselves, or all combinations
                of the layouts that ``segments`` or ``nodes`` of the graph have in them, which the
                server searches. Combinations need a segment model.
            lease: The worker that measures what is suggested, so that no other worker of its search
                gets the same. The server then knows itself what is ``pending``, and needs a store.
            model: As in ``rank``.
            timeout: Deadline in seconds; None for the client's.

        Raises:
            RefusedError: if the call ends with an error status.
        """
        _check_graph(graph)
        if not isinstance(candidates, DescribedConfigs):
            instance(candidates, Batch, "candidates", _CONFIGURATIONS)
        wanted = Wanted(count, pending, since_improvement, seed, source, lease)
        selector = self._selector(model)
        measured = _adapt_message(adapt)

        # Another thread may learn or forget it meanwhile.
        digest = candidates.digest

        def request(source: messages.Graph) -> bytes:
            head = wanted.message(source, selector, measured)
            # A list of 18,000 configurations is 0.7 MB: what the server knows is not sent again.
            head.batch_digest = digest
            # Listed candidates have the field number that a ranking's have.
            sent = b"" if digest else candidates.serialized
            return head.SerializeToString() + sent

        deadline = self._deadline(timeout)
        try:
            answer = self._ask_about(graph, _SUGGEST, request, deadline)
        except RefusedError as error:
            if error.reason != _UNKNOWN_BATCH or not digest:
                raise
            digest = b""
            answer = self._ask_about(graph, _SUGGEST, request, deadline)
        candidates.digest = answer.batch_digest
        suggestions = suggestions_of(answer, wanted, len(candidates))
        check_model(answer.model, graph.task)
        graph.learn(suggestions.graph_hash)
        return suggestions

    def report_measurements(
        self,
        graph: Graph,
        measurements: Adapt,
        *,
        leases: Sequence[bytes] = (),
        search: str = "",
        machine: str = "",
        timeout: float | None = None,
    ) -> Reported:
        """Keeps measurements on the server, for later calls with ``Adapt(use_stored=True)``.

        Returns once they are on disk. A report can be repeated: what is known by its id is kept
        once. If the server has tokens, the client's needs the scope ``report``.

        Args:
            graph: What was measured.
            measurements: Its configurations and what came of each.
            leases: ``GrantedLease.id`` of each, which ends with the report and is the id of the
                measurement; empty if nothing was leased. A lease may have expired: the report
                counts all the same.
            search: The search of the leases.
            machine: What measured.
            timeout: Deadline in seconds; None for the client's.

        Raises:
            RefusedError: if the call ends with an error status.
        """
        _check_graph(graph)
        instance(measurements, Adapt, "measurements", "an Adapt")

        sent = measurements.message
        named = [
            content(one, f"leases[{i}]") for i, one in enumerate(several(leases, "leases", "bytes"))
        ]

        def request(source: messages.Graph) -> bytes:
            report = messages.ReportMeasurementsRequest(
                graph=source,
                target=sent.target,
                batch=sent.batch if sent.HasField("batch") else None,
                seconds=sent.seconds,
                repeats=sent.repeats,
                failures=sent.failures,
                ids=sent.ids,
                leases=named,
                search=text(search, "search"),
                machine=text(machine, "machine"),
            )
            return report.SerializeToString()

        answer = self._ask_about(graph, _REPORT, request, self._deadline(timeout))
        reported = Reported(answer.accepted, answer.known, checked_graph_hash(answer.graph_hash))
        graph.learn(reported.graph_hash)
        return reported

    def renew_leases(
        self,
        graph: Graph,
        target: str,
        lease: Lease,
        granted: Sequence[GrantedLease],
        *,
        give_back: bool = False,
        timeout: float | None = None,
    ) -> tuple[LeaseState, ...]:
        """Prolongs leases of a worker, or gives them back; returns what became of each.

        Args:
            graph: What is searched.
            target: The target of the search.
            lease: What the suggestions were asked with.
            granted: The leases, at most 256.
            give_back: Whether others may have the configurations at once, as before a preemption.
            timeout: Deadline in seconds; None for the client's.

        Raises:
            RefusedError: if the call ends with an error status.
        """
        _check_graph(graph)
        instance(lease, Lease, "lease", "a Lease")
        held = [
            instance(one, GrantedLease, f"granted[{i}]", "a lease of an answer")
            for i, one in enumerate(several(granted, "granted", "leases"))
        ]
        given_back = flag(give_back, "give_back")
        name = text(target, "target")
        request = renewal(lease, checked_hash(graph.hash), name, held, given_back)
        return lease_states_of(self._ask(_RENEW, request, timeout), len(held))

    def decide(
        self,
        key: DecisionKey,
        *,
        worker: str = "",
        ttl: float = defaults.LEASE,
        renew: bool = False,
        give_back: bool = False,
        snapshot: int = 0,
        strict: bool = False,
        timeout: float | None = None,
    ) -> DecideAnswer:
        """Looks up a decision, and claims the right to make it if there is none.

        It never waits for a measurement. If the server has tokens, the client's needs the scope
        that the operator chose.

        Args:
            key: What is decided.
            worker: Who claims it, 1 to 64 bytes; empty to look it up alone.
            ttl: Seconds until a claim expires, from 5 s to 1 h.
            renew: Whether the worker has the claim and prolongs it.
            give_back: Whether the worker gives it up.
            snapshot: Of an earlier answer: decisions made later are not seen, unless they are the
                first ones of their key. 0 for the latest ones.
            strict: With a snapshot, whether later first decisions are not seen either.
            timeout: Deadline in seconds; None for the client's.

        Raises:
            RefusedError: if the call ends with an error status.
        """
        request = _decide_request(key, snapshot, strict)
        if text(worker, "worker"):
            request.claim.worker = worker
            request.claim.renew = flag(renew, "renew")
            request.claim.give_back = flag(give_back, "give_back")
            set_seconds(request.claim.ttl, seconds(ttl, "ttl") or defaults.LEASE)
        return self._decide(request, key, timeout)

    def propose(
        self,
        key: DecisionKey,
        value: bytes,
        evidence: Evidence | None = None,
        *,
        supersede: int = 0,
        timeout: float | None = None,
    ) -> Decision:
        """Proposes a decision, and returns the one that the server keeps.

        That is another one if somebody else was first: use what is returned. After an error ask
        again, since the server may have kept the value.

        Args:
            key: What is decided.
            value: At most 64 KiB that the tuner of the namespace reads.
            evidence: What the value rests on.
            supersede: The generation that a new one follows on purpose, which needs the scope
                ``admin``; 0 for the first decision.
            timeout: Deadline in seconds; None for the client's.

        Raises:
            RefusedError: if the call ends with an error status.
        """
        request = _decide_request(key, 0, False)
        request.propose.value = content(value, "value")
        request.propose.supersede = whole_number(supersede, "supersede")
        found = instance(
            Evidence() if evidence is None else evidence,
            Evidence,
            "evidence",
            "an Evidence or None",
        )
        request.propose.evidence.CopyFrom(found.message())
        decision = (self._decide(request, key, timeout)).decision
        if decision is None:
            raise AnswerError("the server's answer to a proposal has no decision")
        return decision

    def list_decisions(
        self,
        namespace: str = "",
        target: str = "",
        key: bytes = b"",
        *,
        all_generations: bool = False,
        after_snapshot: int = 0,
        after: bytes = b"",
        timeout: float | None = None,
    ) -> DecisionsPage:
        """Returns a page of the decisions that the server keeps.

        Args:
            namespace: Their namespace; empty for all.
            target: Their target; empty for all.
            key: Their key; empty for all.
            all_generations: Whether to list what was superseded, too.
            after_snapshot: Only what was decided later; 0 for all.
            after: ``next`` of the page before; empty for the first page.
            timeout: Deadline in seconds; None for the client's.
        """
        request = messages.ListDecisionsRequest(
            namespace=text(namespace, "namespace"),
            target=text(target, "target"),
            key=content(key, "key"),
            all_generations=flag(all_generations, "all_generations"),
            after_snapshot=whole_number(after_snapshot, "after_snapshot", most=U64),
            page_token=content(after, "after", "the bytes of next of the page before"),
        )
        return decisions_page_of(self._ask(_DECISIONS, request, timeout))

    def list_measurements(
        self,
        target: str = "",
        graph_hash: bytes = b"",
        *,
        reported_before: datetime | None = None,
        after: bytes = b"",
        timeout: float | None = None,
    ) -> MeasurementsPage:
        """Returns a page of the measurements that the server keeps.

        Args:
            target: Their target; empty for all.
            graph_hash: Their graph on that target; empty for all.
            reported_before: A time with a zone before which they were reported; None for all.
            after: ``next`` of the page before; empty for the first page.
            timeout: Deadline in seconds; None for the client's.

        Raises:
            ArgumentError: if ``graph_hash`` is None, as ``Graph.hash`` is before any answer.
        """
        request = messages.ListMeasurementsRequest(
            target=text(target, "target"),
            graph_hash=checked_hash(graph_hash),
            page_token=content(after, "after", "the bytes of next of the page before"),
            reported_before=checked_time(reported_before),
        )
        return page_of(self._ask(_LIST, request, timeout))

    def get_measured_graph(
        self, target: str, graph_hash: bytes, *, timeout: float | None = None
    ) -> Graph | None:
        """Returns a graph that the server keeps measurements of, without names.

        Returns None if the server keeps nothing of the graph on the target, or measurements alone,
        because the graph was too large. If the server has tokens, the client's needs the scope
        ``admin``.
        """
        request = messages.GetMeasuredGraphRequest(
            target=text(target, "target"), graph_hash=checked_hash(graph_hash)
        )
        answer = self._ask(_GET_GRAPH, request, timeout)
        # The store keeps measurements of graphs that were too large to keep.
        if not answer.HasField("graph"):
            return None
        graph = Graph(answer.graph)
        graph.learn(request.graph_hash)
        return graph

    def delete_measurements(
        self,
        target: str,
        graph_hash: bytes,
        *,
        reported_before: datetime | None = None,
        timeout: float | None = None,
    ) -> int:
        """Deletes the measurements of one graph on a target, of all times or from before one.

        Returns how many there were. If the server has tokens, the client's needs the scope
        ``admin``.

        Raises:
            ArgumentError: if ``graph_hash`` is empty or None, as ``Graph.hash`` is until a call was
                answered.
        """
        found = b"" if graph_hash is None else checked_hash(graph_hash)
        if not found:
            hint = f"{HASH_HINT}; delete_target deletes the measurements of all graphs"
            raise ArgumentError(f"graph_hash is {graph_hash!r}: {hint}")
        request = messages.DeleteMeasurementsRequest(
            target=text(target, "target"),
            graph_hash=found,
            reported_before=checked_time(reported_before),
        )
        return self._delete(request, timeout)

    def delete_target(
        self,
        target: str,
        *,
        reported_before: datetime | None = None,
        timeout: float | None = None,
    ) -> int:
        """Deletes the measurements of all graphs on a target, of all times or from before one.

        Returns how many there were. If the server has tokens, the client's needs the scope
        ``admin``.
        """
        request = messages.DeleteMeasurementsRequest(
            target=text(target, "target"), reported_before=checked_time(reported_before)
        )
        return self._delete(request, timeout)

    def delete_reporter(
        self, reporter: str, target: str = "", *, timeout: float | None = None
    ) -> int:
        """Deletes what a reporter measured, on one target or, by default, on all.

        Returns how many there were. ``GraphMeasurements.reporters`` has the reporters. If the
        server has tokens, the client's needs the scope ``admin``.

        Raises:
            ArgumentError: if ``reporter`` is empty.
        """
        name = text(reporter, "reporter")
        if not name:
            raise ArgumentError("reporter is empty: list_measurements has the reporters")
        request = messages.DeleteMeasurementsRequest(reporter=name, target=text(target, "target"))
        return self._delete(request, timeout)

    def rank_stream(
        self,
        graph: Graph,
        *,
        top_k: int = 0,
        model: ModelReference | str | None = None,
        adapt: Adapt | None = None,
        timeout: float | None = None,
    ) -> RankStream:
        """Starts a stream that ranks configurations in batches, once the server has its graph.

        Use it if the configurations exceed one message, or are not all known at once. ``timeout``
        is the deadline of the whole stream in seconds; None for no deadline. ``adapt`` is as in
        ``rank``.
        """
        _check_graph(graph)
        start = messages.RankConfigsStart(
            model=self._selector(model),
            top_k=whole_number(top_k, "top_k"),
            adapt=_adapt_message(adapt),
        )
        # Not the client's deadline: a stream lasts as long as the search that feeds it.
        deadline = Deadline(seconds(timeout, "timeout"))

        def begin(source: messages.Graph) -> RankStream:
            start.graph.CopyFrom(source)
            return self._started(graph, start, deadline)

        return _by_hash_or_whole(graph, begin)

    def list_models(self, *, timeout: float | None = None) -> list[Model]:
        """Returns every model version, sorted by name and version."""
        answer = self._ask(_MODELS, messages.ListModelsRequest(), timeout)
        return [model_of(model) for model in answer.models]

    def get_model(
        self, name: str, version: int | None = None, *, timeout: float | None = None
    ) -> Model:
        """Returns one version of a model; without ``version``, the stable one."""
        request = messages.GetModelRequest(
            name=text(name, "name", "the name of a model"),
            version=0 if version is None else whole_number(version, "version", 1),
        )
        answer = self._ask(_MODEL, request, timeout)
        if not answer.HasField("model"):
            raise AnswerError("the server's answer contains no model")
        return model_of(answer.model)

    def compare_models(
        self,
        first: ModelReference | str,
        second: ModelReference | str,
        target: str = "",
        *,
        timeout: float | None = None,
    ) -> Comparison:
        """Compares how two loaded versions rank the measurements that the server keeps.

        ``target`` is that of the measurements; empty for all. A call that times out can be
        repeated, and continues. If the server has tokens, the client's needs the scope ``admin``.

        Raises:
            RefusedError: if the call ends with an error status.
        """
        request = messages.CompareModelsRequest(
            first=model_reference(first).selector(),
            second=model_reference(second).selector(),
            target=text(target, "target"),
        )
        return comparison_of(self._ask(_COMPARE, request, timeout))

    def close(self) -> None:
        """Closes the connection and cancels calls in flight."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(
        self,
        method: Method[Response],
        request: Message,
        timeout: float | None,
        metadata: Metadata = (),
    ) -> Response:
        content = request.SerializeToString()
        return self._call(method, content, self._deadline(timeout), metadata)

    def _ask_about(
        self,
        graph: Graph,
        method: Method[Response],
        request: Callable[[messages.Graph], bytes],
        deadline: Deadline,
    ) -> Response:
        def ask(source: messages.Graph) -> Response:
            return self._call(method, request(source), deadline, _routed(graph))

        return _by_hash_or_whole(graph, ask)

    def _call(
        self, method: Method[Response], message: bytes, deadline: Deadline, metadata: Metadata = ()
    ) -> Response:
        attempts = Attempts(self._retry, deadline)
        while True:
            try:
                return self._transport.call(method, message, metadata, deadline.left())
            except RefusedError as error:
                pause = attempts.pause_after(error)
            self._transport.pause(pause)

    def _decide(
        self, request: messages.DecideRequest, key: DecisionKey, timeout: float | None
    ) -> DecideAnswer:
        return decide_answer_of(self._ask(_DECIDE, request, timeout), key)

    def _delete(self, request: messages.DeleteMeasurementsRequest, timeout: float | None) -> int:
        return (self._ask(_DELETE, request, timeout)).deleted

    def _started(
        self, graph: Graph, start: messages.RankConfigsStart, deadline: Deadline
    ) -> RankStream:
        """Opens a stream; only what comes before its first answer can be repeated."""
        message = messages.RankConfigsStreamRequest(start=start).SerializeToString()
        attempts = Attempts(self._retry, deadline)
        while True:
            # Each attempt has what is left of the deadline, so that all of them end with it.
            exchange = self._transport.open(_STREAM, _routed(graph), deadline.left())
            try:
                exchange.write(message)
                started = (next_part(exchange, "started")).started
                graph.learn(checked_graph_hash(started.graph_hash))
                stream = RankStream(exchange, started, graph.task, start.top_k, self._message_bytes)
                check_model(started.model, graph.task)
                return stream
            except BaseException as error:
                exchange.cancel()
                if not isinstance(error, RefusedError):
                    raise
                pause = attempts.pause_after(error)
            self._transport.pause(pause)

    def _deadline(self, timeout: float | None) -> Deadline:
        return Deadline(self._timeout if timeout is None else seconds(timeout, "timeout"))

    def _selector(self, model: ModelReference | str | None) -> messages.ModelSelector | None:
        if model is None:
            return messages.ModelSelector(target=self._target) if self._target else None
        selector = model_reference(model).selector()
        selector.target = self._target
        return selector


def _by_hash_or_whole(graph: Graph, ask: Callable[[messages.Graph], T]) -> T:
    """Asks with the hash if it is known, and with the graph if the server does not have it."""
    by_hash = graph.by_hash()
    if by_hash is not None:
        try:
            return ask(by_hash)
        except PreconditionError as error:
            if error.reason != _NOT_CACHED:
                raise
    return ask(graph.whole())


def _routed(graph: Graph) -> Metadata:
    return ((ROUTE_HEADER, graph.route),)


def _decide_request(key: DecisionKey, snapshot: int, strict: bool) -> messages.DecideRequest:
    return messages.DecideRequest(
        key=instance(key, DecisionKey, "key", "a DecisionKey").message(),
        snapshot=whole_number(snapshot, "snapshot", most=U64),
        strict=flag(strict, "strict"),
    )


def _check_graph(graph: Graph) -> None:
    instance(graph, Graph, "graph", "a hlorank.Graph, such as Graph.from_lowered(...) returns")


def _adapt_message(adapt: Adapt | None) -> messages.Adapt | None:
    return None if adapt is None else instance(adapt, Adapt, "adapt", "an Adapt or None").message
