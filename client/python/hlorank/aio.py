"""The client for asyncio."""

import asyncio
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self, TypeVar
from weakref import WeakKeyDictionary

import grpc
import grpc.aio

from hlorank.adapt import Adapt
from hlorank.address import channel_credentials, host_and_port
from hlorank.arguments import message_size, seconds, text
from hlorank.blocking import BlockingExchange, BlockingTransport, channel, run_to_end
from hlorank.comparison import Comparison
from hlorank.configurations import Configurations
from hlorank.errors import ClosedError, RefusedError, refused
from hlorank.graph import Graph
from hlorank.measurements import MeasurementsPage, Reported
from hlorank.model import Model, ModelReference
from hlorank.ranking import BatchScores, CachedGraph, Ranking
from hlorank.retry import retry_of
from hlorank.session import Session
from hlorank.space import Space
from hlorank.space_search import AsyncSpaceSearch
from hlorank.space_session import SpaceSession, Target
from hlorank.stream_session import StreamSession
from hlorank.suggest import Source, Suggestions, Wanted
from hlorank.token_header import authorization
from hlorank.transport import (
    Calls,
    Metadata,
    Method,
    channel_options,
)

T = TypeVar("T")


class AsyncClient:
    """A connection to a server, like ``Client``.

    It may be made before an event loop runs. Every event loop that uses it has a connection of its
    own; ``close`` closes that of the running loop.
    """

    def __init__(
        self,
        address: str,
        *,
        timeout: float | str | None = 30.0,
        connect_timeout: float | str = 10.0,
        retries: int | None = None,
        message_bytes: int | str = 64 << 20,
        credentials: grpc.ChannelCredentials | None = None,
        token: str | None = None,
        target: str = "",
    ):
        options = channel_options(connect_timeout, message_bytes)
        host = host_and_port(address)
        secured = channel_credentials(address, credentials)
        headers = authorization(token)
        retry = retry_of(retries)
        size = message_size(message_bytes, "message_bytes")
        default = seconds(timeout, "timeout")
        checked = text(target, "target")
        self._transport = _AsyncTransport(host, secured, options, headers)
        self._session = Session(self._transport, retry, size, default, checked)

    async def put_graph(self, graph: Graph, *, timeout: float | None = None) -> CachedGraph:
        """Works like ``Client.put_graph``."""
        return await self._session.put_graph(graph, timeout)

    async def rank(
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
        assess_confidence: bool = False,
        timeout: float | None = None,
    ) -> Ranking:
        """Works like ``Client.rank``."""
        return await self._session.rank(
            graph,
            configurations,
            top_k,
            model,
            with_scores,
            allow_partial,
            adapt,
            explain_top,
            assess_confidence,
            timeout,
        )

    async def suggest(
        self,
        graph: Graph,
        candidates: Configurations,
        *,
        adapt: Adapt | None = None,
        count: int = 1,
        pending: Sequence[int] = (),
        since_improvement: int = 0,
        seed: int = 0,
        source: Source = "candidates",
        model: ModelReference | str | None = None,
        timeout: float | None = None,
    ) -> Suggestions:
        """Works like ``Client.suggest``."""
        wanted = Wanted(count, pending, since_improvement, seed, source)
        return await self._session.suggest(graph, candidates, wanted, model, adapt, timeout)

    def search(
        self,
        space: Space,
        target: str,
        *,
        other_targets: Sequence[str] = (),
        all_other_targets: bool = False,
        model: ModelReference | str | None = None,
        seed: int = 0,
    ) -> AsyncSpaceSearch:
        """Works like ``Client.search``."""
        measured_on = Target(target, other_targets, all_other_targets, model)
        return AsyncSpaceSearch(SpaceSession(self._session, space, measured_on, seed))

    async def report_measurements(
        self, graph: Graph, measurements: Adapt, *, timeout: float | None = None
    ) -> Reported:
        """Works like ``Client.report_measurements``."""
        return await self._session.report_measurements(graph, measurements, timeout)

    async def list_measurements(
        self,
        target: str = "",
        graph_hash: bytes = b"",
        *,
        after: bytes = b"",
        timeout: float | None = None,
    ) -> MeasurementsPage:
        """Works like ``Client.list_measurements``."""
        return await self._session.list_measurements(target, graph_hash, after, timeout)

    async def get_measured_graph(
        self, target: str, graph_hash: bytes, *, timeout: float | None = None
    ) -> Graph | None:
        """Works like ``Client.get_measured_graph``."""
        return await self._session.get_measured_graph(target, graph_hash, timeout)

    async def delete_measurements(
        self, target: str, graph_hash: bytes, *, timeout: float | None = None
    ) -> int:
        """Works like ``Client.delete_measurements``."""
        return await self._session.delete_measurements(target, graph_hash, timeout)

    async def delete_target(self, target: str, *, timeout: float | None = None) -> int:
        """Works like ``Client.delete_target``."""
        return await self._session.delete_target(target, timeout)

    async def delete_reporter(
        self, reporter: str, target: str = "", *, timeout: float | None = None
    ) -> int:
        """Works like ``Client.delete_reporter``."""
        return await self._session.delete_reporter(reporter, target, timeout)

    async def rank_stream(
        self,
        graph: Graph,
        *,
        top_k: int = 0,
        model: ModelReference | str | None = None,
        adapt: Adapt | None = None,
        timeout: float | None = None,
    ) -> "AsyncRankStream":
        """Works like ``Client.rank_stream``."""
        stream = await self._session.rank_stream(graph, top_k, model, adapt, timeout)
        return AsyncRankStream(stream)

    async def list_models(self, *, timeout: float | None = None) -> list[Model]:
        """Works like ``Client.list_models``."""
        return await self._session.list_models(timeout)

    async def get_model(
        self, name: str, version: int | None = None, *, timeout: float | None = None
    ) -> Model:
        """Works like ``Client.get_model``."""
        return await self._session.get_model(name, version, timeout)

    async def compare_models(
        self,
        first: ModelReference | str,
        second: ModelReference | str,
        target: str = "",
        *,
        timeout: float | None = None,
    ) -> Comparison:
        """Works like ``Client.compare_models``."""
        return await self._session.compare_models(first, second, target, timeout)

    async def close(self) -> None:
        """Closes the connection and cancels calls in flight."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


class AsyncRankStream:
    """Works like ``RankStream``."""

    def __init__(self, stream: StreamSession):
        self._stream = stream

    @property
    def model(self) -> ModelReference | None:
        """The model version that scores; None if none does, but measurements alone."""
        return self._stream.model

    async def send(self, configurations: Configurations) -> None:
        """Works like ``RankStream.send``."""
        await self._stream.send(configurations)

    async def scores(self) -> BatchScores | None:
        """Works like ``RankStream.scores``."""
        return await self._stream.scores()

    async def finish(self) -> Ranking:
        """Works like ``RankStream.finish``."""
        return await self._stream.finish()

    def cancel(self) -> None:
        """Cancels the call."""
        self._stream.exchange.cancel()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.cancel()


class _AsyncTransport:
    def __init__(
        self,
        address: str,
        credentials: grpc.ChannelCredentials | None,
        options: list[tuple[str, int]],
        headers: Metadata,
    ):
        self._address = address
        self._credentials = credentials
        self._options = options
        self._streams = BlockingTransport(channel(address, credentials, options), headers)
        # A channel of grpc.aio works only in the event loop that opened it.
        self._channels: WeakKeyDictionary[Any, tuple[grpc.aio.Channel, Calls]]
        self._channels = WeakKeyDictionary()
        self._headers = headers
        self._is_closed = False

    async def call(
        self, method: Method, message: bytes, metadata: Metadata, timeout: float | None
    ) -> Any:
        call = self._calls().of(method)
        try:
            return await call(message, timeout=timeout, metadata=self._headers + metadata)
        except grpc.aio.AioRpcError as error:
            raise refused(error) from None
        except grpc.aio.UsageError as error:
            raise ClosedError(f"the client was closed during the call: {error}") from error

    def _calls(self) -> Calls:
        """Returns the calls of the running event loop, for which it opens a channel."""
        if self._is_closed:
            raise ClosedError("the client is closed")
        loop = asyncio.get_running_loop()
        if loop not in self._channels:
            opened = self._open()
            self._channels[loop] = opened, Calls(opened)
        return self._channels[loop][1]

    def _open(self) -> grpc.aio.Channel:
        if self._credentials is None:
            return grpc.aio.insecure_channel(self._address, self._options)
        return grpc.aio.secure_channel(self._address, self._credentials, self._options)

    async def open(
        self, method: Method, metadata: Metadata, timeout: float | None
    ) -> "_ThreadedExchange":
        return _ThreadedExchange(await self._streams.open(method, metadata, timeout))

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def close(self) -> None:
        self._is_closed = True
        self._streams.close()
        opened = self._channels.pop(asyncio.get_running_loop(), None)
        if opened is not None:
            await opened[0].close()
        # Those of other loops end when they are collected.
        self._channels.clear()


class _ThreadedExchange:
    """A blocking stream with two threads of its own, one that writes and one that reads.

    The streams of grpc.aio lose the reason why a server ended a call if it arrives during a write.
    """

    def __init__(self, exchange: BlockingExchange):
        self._exchange = exchange
        self._threads: ThreadPoolExecutor | None = ThreadPoolExecutor(2, "hlorank-stream")

    async def write(self, message: bytes) -> bool:
        return await self._on_thread(self._exchange.write(message))

    async def done_writing(self) -> None:
        await self._exchange.done_writing()

    async def read(self) -> Any:
        answer = await self._on_thread(self._exchange.read())
        if answer is None:
            self.cancel()
        return answer

    def cancel(self) -> None:
        """Cancels the call and ends its threads."""
        self._exchange.cancel()
        threads = self._threads
        self._threads = None
        if threads is not None:
            threads.shutdown(wait=False)

    async def _on_thread(self, blocking: Coroutine[Any, Any, T]) -> T:
        loop = asyncio.get_running_loop()
        try:
            # After the end nothing blocks, so a thread of the event loop is enough.
            return await loop.run_in_executor(self._threads, run_to_end, blocking)
        except (asyncio.CancelledError, RefusedError):
            # An abandoned thread would consume the message that the next one waits for.
            self.cancel()
            raise
