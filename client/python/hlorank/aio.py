"""The client for asyncio."""

import asyncio
from types import TracebackType
from typing import Any, Self

import grpc
import grpc.aio

from hlorank.errors import refused
from hlorank.graph import Graph
from hlorank.model import Model, ModelReference
from hlorank.ranking import BatchScores, CachedGraph, Ranking
from hlorank.retry import Retry
from hlorank.session import Configurations, Session, StreamSession
from hlorank.transport import Metadata, Method, channel_options, target


class AsyncClient:
    """A connection to a server, as ``Client`` is; made and used within one event loop."""

    def __init__(
        self,
        address: str,
        *,
        timeout: float | None = 30.0,
        connect_timeout: float = 10.0,
        retries: int = 4,
        message_bytes: int = 64 << 20,
    ):
        options = channel_options(connect_timeout, message_bytes)
        self._channel = grpc.aio.insecure_channel(target(address), options)
        self._session = Session(_AsyncTransport(self._channel), Retry(retries), message_bytes)
        self._timeout = timeout

    async def put_graph(self, graph: Graph, *, timeout: float | None = None) -> CachedGraph:
        """As ``Client.put_graph``."""
        return await self._session.put_graph(graph, timeout or self._timeout)

    async def rank(
        self,
        graph: Graph,
        configurations: Configurations,
        *,
        top_k: int = 0,
        model: ModelReference | str | None = None,
        with_scores: bool = False,
        timeout: float | None = None,
    ) -> Ranking:
        """As ``Client.rank``."""
        timeout = timeout or self._timeout
        return await self._session.rank(graph, configurations, top_k, model, with_scores, timeout)

    async def rank_stream(
        self,
        graph: Graph,
        *,
        top_k: int = 0,
        model: ModelReference | str | None = None,
        timeout: float | None = None,
    ) -> "AsyncRankStream":
        """As ``Client.rank_stream``."""
        return AsyncRankStream(await self._session.rank_stream(graph, top_k, model, timeout))

    async def list_models(self, *, timeout: float | None = None) -> list[Model]:
        """As ``Client.list_models``."""
        return await self._session.list_models(timeout or self._timeout)

    async def get_model(
        self, name: str, version: int | None = None, *, timeout: float | None = None
    ) -> Model:
        """As ``Client.get_model``."""
        return await self._session.get_model(name, version, timeout or self._timeout)

    async def close(self) -> None:
        """Closes the connection; calls in progress are cancelled."""
        await self._channel.close()

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
    """As ``RankStream``."""

    def __init__(self, stream: StreamSession):
        self._stream = stream

    @property
    def model(self) -> ModelReference:
        """Who scores."""
        return self._stream.model

    async def send(self, configurations: Configurations) -> None:
        """As ``RankStream.send``."""
        await self._stream.send(configurations)

    async def scores(self) -> BatchScores | None:
        """As ``RankStream.scores``."""
        return await self._stream.scores()

    async def finish(self) -> Ranking:
        """As ``RankStream.finish``."""
        return await self._stream.finish()

    def cancel(self) -> None:
        """Ends the call."""
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
    def __init__(self, channel: grpc.aio.Channel):
        self._channel = channel
        self._methods: dict[str, Any] = {}

    async def call(
        self, method: Method, message: Any, metadata: Metadata, timeout: float | None
    ) -> Any:
        call = self._methods.get(method.path)
        if call is None:
            call = self._methods[method.path] = self._channel.unary_unary(
                method.path, method.request.SerializeToString, method.response.FromString
            )
        try:
            return await call(message, timeout=timeout, metadata=metadata)
        except grpc.aio.AioRpcError as error:
            raise refused(error) from None

    async def open(
        self, method: Method, metadata: Metadata, timeout: float | None
    ) -> "_AsyncExchange":
        stream = self._channel.stream_stream(
            method.path, method.request.SerializeToString, method.response.FromString
        )
        return _AsyncExchange(stream(timeout=timeout, metadata=metadata))

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class _AsyncExchange:
    def __init__(self, call: Any):
        self._call = call

    async def write(self, message: Any) -> bool:
        try:
            await self._call.write(message)
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            return False
        return True

    async def done_writing(self) -> None:
        await self._call.done_writing()

    async def read(self) -> Any:
        try:
            answer = await self._call.read()
        except grpc.aio.AioRpcError as error:
            raise refused(error) from None
        return None if answer is grpc.aio.EOF else answer

    def cancel(self) -> None:
        self._call.cancel()
