"""The calls, shared by the sync and the async client."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import grpc

from hlorank.adapt import Adapt
from hlorank.arguments import flag, instance, seconds, text, whole_number
from hlorank.asked import Asked, check_model
from hlorank.batch import Batch
from hlorank.comparison import Comparison, compare_message, comparison_of
from hlorank.configurations import Configurations
from hlorank.errors import (
    AnswerError,
    DeadlineError,
    PreconditionError,
    RefusedError,
)
from hlorank.graph import Graph
from hlorank.graph_source import wire_source
from hlorank.measurements import (
    MeasurementsPage,
    Reported,
    checked_hash,
    delete_message,
    delete_reporter_message,
    list_message,
    page_of,
    report_message,
)
from hlorank.messages import (
    DeleteMeasurementsRequest,
    GetMeasuredGraphRequest,
    GetModelRequest,
    ModelSelector,
    PutGraphRequest,
    RankConfigsRequest,
    RankConfigsStart,
    RankConfigsStreamRequest,
)
from hlorank.model import Model, ModelReference, model_of, model_reference
from hlorank.ranking import (
    CachedGraph,
    Ranking,
    cached_graph_of,
    graph_hash_of,
    model_of_answer,
    timings_of,
)
from hlorank.retry import PATIENCE, Deadline, Retry
from hlorank.route import ROUTE_HEADER
from hlorank.stream_session import StreamSession, next_part
from hlorank.suggest import Suggestions, Wanted, suggestions_of
from hlorank.transport import (
    COMPARE_MODELS,
    DELETE_MEASUREMENTS,
    GET_MEASURED_GRAPH,
    GET_MODEL,
    LIST_MEASUREMENTS,
    LIST_MODELS,
    PUT_GRAPH,
    RANK_CONFIGS,
    RANK_CONFIGS_STREAM,
    REPORT_MEASUREMENTS,
    SUGGEST_CONFIGS,
    Metadata,
    Method,
    Transport,
)

_NOT_CACHED = "GRAPH_NOT_CACHED"


@dataclass(frozen=True)
class Session:
    """Calls over one transport."""

    transport: Transport
    retry: Retry
    message_bytes: int
    timeout: float | None
    """Default deadline in seconds of every call except streams."""
    target: str = ""
    """What configurations are for; empty for the target of a call's measurements."""

    async def put_graph(self, graph: Graph, timeout: float | None) -> CachedGraph:
        """Sends a graph to the server's cache."""
        _checked_graph(graph)
        request = PutGraphRequest(graph=graph.whole())
        cached = cached_graph_of(
            await self._call(
                PUT_GRAPH, request.SerializeToString(), _routed(graph), self._deadline(timeout)
            )
        )
        graph.learn(cached.hash)
        return cached

    async def rank(
        self,
        graph: Graph,
        configurations: Configurations,
        top_k: int,
        model: ModelReference | str | None,
        with_scores: bool,
        allow_partial: bool,
        adapt: Adapt | None,
        explain_top: int,
        assess_confidence: bool,
        timeout: float | None,
    ) -> Ranking:
        """Ranks configurations."""
        _checked_graph(graph)
        checked_configurations(configurations, "configurations")
        options = {
            "top_k": whole_number(top_k, "top_k"),
            "include_scores": flag(with_scores, "with_scores"),
            "allow_partial": flag(allow_partial, "allow_partial"),
            "explain_top": whole_number(explain_top, "explain_top"),
            "assess_confidence": flag(assess_confidence, "assess_confidence"),
            "adapt": _adapt_message(adapt),
        }
        selector = self._selector(model)
        deadline = self._deadline(timeout)

        async def ask(source: Any) -> Any:
            request = RankConfigsRequest(graph=source, model=selector, **options)
            # Two concatenated serialized messages are parsed as their merger.
            message = request.SerializeToString() + configurations.serialized
            return await self._call(RANK_CONFIGS, message, _routed(graph), deadline)

        answer = await _by_hash_or_whole(graph, ask)
        asked = Asked(
            len(configurations),
            graph.task,
            options["top_k"],
            with_scores,
            allow_partial,
            options["explain_top"],
        )
        ranking = Ranking(answer, answer.scored_configs, answer.scores if with_scores else None)
        asked.check(ranking)
        graph.learn(ranking.graph_hash)
        return ranking

    async def suggest(
        self,
        graph: Graph,
        candidates: Configurations,
        wanted: Wanted,
        model: ModelReference | str | None,
        adapt: Adapt | None,
        timeout: float | None,
    ) -> Suggestions:
        """Proposes what to measure next."""
        _checked_graph(graph)
        checked_configurations(candidates, "candidates")
        selector = self._selector(model)
        deadline = self._deadline(timeout)
        measured = _adapt_message(adapt)

        async def ask(source: Any) -> Any:
            request = wanted.message(source, selector, measured)
            # The candidates have the field number that a ranking's have.
            message = request.SerializeToString() + candidates.serialized
            return await self._call(SUGGEST_CONFIGS, message, _routed(graph), deadline)

        answer = await _by_hash_or_whole(graph, ask)
        suggestions = suggestions_of(answer, wanted, len(candidates))
        check_model(suggestions.model, graph.task)
        graph.learn(suggestions.graph_hash)
        return suggestions

    async def report_measurements(
        self, graph: Graph, measurements: Adapt, timeout: float | None
    ) -> Reported:
        """Keeps measurements on the server."""
        _checked_graph(graph)
        instance(measurements, Adapt, "measurements", "an Adapt")
        deadline = self._deadline(timeout)

        async def ask(source: Any) -> Any:
            message = report_message(source, measurements).SerializeToString()
            return await self._call(REPORT_MEASUREMENTS, message, _routed(graph), deadline)

        answer = await _by_hash_or_whole(graph, ask)
        reported = Reported(answer.accepted, answer.known, graph_hash_of(answer))
        graph.learn(reported.graph_hash)
        return reported

    async def list_measurements(
        self, target: str, graph_hash: bytes, after: bytes, timeout: float | None
    ) -> MeasurementsPage:
        """Returns a page of the measurements that the server keeps."""
        message = list_message(target, graph_hash, after).SerializeToString()
        answer = await self._call(LIST_MEASUREMENTS, message, (), self._deadline(timeout))
        return page_of(answer)

    async def get_measured_graph(
        self, target: str, graph_hash: bytes, timeout: float | None
    ) -> Graph | None:
        """Returns a graph that the server keeps measurements of, if it keeps the graph itself."""
        graph_hash = checked_hash(graph_hash)
        request = GetMeasuredGraphRequest(target=text(target, "target"), graph_hash=graph_hash)
        message = request.SerializeToString()
        deadline = self._deadline(timeout)
        answer = await self._call(GET_MEASURED_GRAPH, message, (), deadline)
        if not answer.HasField("graph"):
            return None
        graph = Graph(wire_source(answer.graph))
        graph.learn(graph_hash)
        return graph

    async def delete_measurements(
        self, target: str, graph_hash: bytes, timeout: float | None
    ) -> int:
        """Deletes the measurements of one graph on a target."""
        return await self._delete(delete_message(target, graph_hash), timeout)

    async def delete_target(self, target: str, timeout: float | None) -> int:
        """Deletes the measurements of all graphs on a target."""
        checked = text(target, "target")
        return await self._delete(DeleteMeasurementsRequest(target=checked), timeout)

    async def delete_reporter(self, reporter: str, target: str, timeout: float | None) -> int:
        """Deletes the measurements of a reporter."""
        return await self._delete(delete_reporter_message(reporter, target), timeout)

    async def _delete(self, request: Any, timeout: float | None) -> int:
        message = request.SerializeToString()
        answer = await self._call(DELETE_MEASUREMENTS, message, (), self._deadline(timeout))
        return answer.deleted

    def _selector(self, model: ModelReference | str | None) -> Any:
        if model is None:
            return ModelSelector(target=self.target) if self.target else None
        selector = model_reference(model).selector()
        selector.target = self.target
        return selector

    async def rank_stream(
        self,
        graph: Graph,
        top_k: int,
        model: ModelReference | str | None,
        adapt: Adapt | None,
        timeout: float | None,
    ) -> "StreamSession":
        """Starts a stream and waits until the server has found the graph."""
        _checked_graph(graph)
        limit = whole_number(top_k, "top_k")
        measured = _adapt_message(adapt)
        selector = self._selector(model)
        deadline = Deadline(seconds(timeout, "timeout"))

        async def ask(source: Any) -> StreamSession:
            start = RankConfigsStart(graph=source, model=selector, top_k=limit, adapt=measured)
            return await self._retried(lambda: self._started(graph, start, deadline), deadline)

        return await _by_hash_or_whole(graph, ask)

    async def list_models(self, timeout: float | None) -> list[Model]:
        """Returns every model version, sorted by name and version."""
        answer = await self._call(LIST_MODELS, b"", (), self._deadline(timeout))
        return [model_of(model) for model in answer.models]

    async def get_model(self, name: str, version: int | None, timeout: float | None) -> Model:
        """Returns one version of a model, or the stable one."""
        number = 0 if version is None else whole_number(version, "version")
        name = text(name, "name", "the name of a model")
        request = GetModelRequest(name=name, version=number).SerializeToString()
        answer = await self._call(GET_MODEL, request, (), self._deadline(timeout))
        if not answer.HasField("model"):
            raise AnswerError("the server's answer contains no model")
        return model_of(answer.model)

    async def compare_models(
        self,
        first: ModelReference | str,
        second: ModelReference | str,
        target: str,
        timeout: float | None,
    ) -> Comparison:
        """Compares two model versions on the measurements that the server keeps."""
        message = compare_message(first, second, target).SerializeToString()
        answer = await self._call(COMPARE_MODELS, message, (), self._deadline(timeout))
        return comparison_of(answer)

    def _deadline(self, timeout: float | None) -> Deadline:
        return Deadline(self.timeout if timeout is None else seconds(timeout, "timeout"))

    async def _call(
        self, method: Method, message: bytes, metadata: Metadata, deadline: Deadline
    ) -> Any:
        def call() -> Awaitable[Any]:
            return self.transport.call(method, message, metadata, deadline.left())

        return await self._retried(call, deadline)

    async def _retried(self, call: Callable[[], Awaitable[Any]], deadline: Deadline) -> Any:
        if deadline.left() == 0:
            code = grpc.StatusCode.DEADLINE_EXCEEDED
            raise DeadlineError(code, "the timeout expired before the call")
        retries = 0
        limit = deadline
        before: RefusedError | None = None
        while True:
            try:
                return await call()
            except RefusedError as error:
                if retries == 0 and deadline.left() is None:
                    limit = Deadline(PATIENCE)
                pause = self.retry.pause(error, retries)
                if pause is None or not limit.allows(pause):
                    if before is not None and isinstance(error, DeadlineError):
                        raise before from error  # it says why there was no answer in time
                    raise
                before = error
            await self.transport.pause(pause)
            retries += 1

    async def _started(self, graph: Graph, start: Any, deadline: Deadline) -> "StreamSession":
        exchange = await self.transport.open(RANK_CONFIGS_STREAM, _routed(graph), deadline.left())
        try:
            await exchange.write(RankConfigsStreamRequest(start=start).SerializeToString())
            started = await next_part(exchange, "started")
            graph.learn(graph_hash_of(started))
            model = model_of_answer(started)
            check_model(model, graph.task)
            return StreamSession(
                exchange,
                self.message_bytes,
                graph.task,
                start.top_k,
                model,
                timings_of(started.timings),
                started,
            )
        except BaseException:
            exchange.cancel()
            raise


async def _by_hash_or_whole(graph: Graph, ask: Callable[[Any], Awaitable[Any]]) -> Any:
    """Asks with the hash if it is known, and with the graph if the server does not have it."""
    by_hash = graph.by_hash()
    if by_hash is not None:
        try:
            return await ask(by_hash)
        except PreconditionError as error:
            if error.reason != _NOT_CACHED:
                raise
    return await ask(graph.whole())


def _routed(graph: Graph) -> Metadata:
    return ((ROUTE_HEADER, graph.route),)


def _checked_graph(graph: Any) -> None:
    instance(graph, Graph, "graph", "a hlorank.Graph, such as Graph.from_lowered(...) returns")


def checked_configurations(value: Any, what: str) -> None:
    """Checks that a value is packed configurations."""
    expected = "Layouts, Tiles, Fusions or ConfigFeatures of the graph"
    instance(value, Batch, what, expected)


def _adapt_message(adapt: Any) -> Any:
    return None if adapt is None else instance(adapt, Adapt, "adapt", "an Adapt or None").message
