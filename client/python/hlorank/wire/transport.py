"""Channels of gRPC: one that blocks the calling thread, and one for asyncio.

Both have the same methods, so that the calls are written once, for asyncio, and the others are
generated from them. Threads may share a channel, since gRPC's are safe to share. None survives a
fork: gRPC's own threads do not exist in the child, where a call would wait for ever, so a call in
another process than that of the client is refused.
"""

import asyncio
import os
import threading
import time
from asyncio import Lock as AsyncLock
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import RLock as SyncLock
from typing import Any, Generic, NoReturn, Self, TypeVar
from weakref import WeakKeyDictionary

import grpc
import grpc.aio
from google.protobuf.message import Message

from hlorank.checks.arguments import seconds, wrong
from hlorank.checks.errors import AnswerError, ArgumentError, ClosedError, HlorankError
from hlorank.wire.refusals import refused
from hlorank.wire.situations import NO_MESSAGE

__all__ = ["AsyncExchange", "AsyncLock", "AsyncTransport", "Channel", "Connected", "Metadata"]
__all__ += ["Method", "SyncExchange", "SyncLock", "SyncTransport"]

T = TypeVar("T")
Response = TypeVar("Response", bound=Message)
Invoke = Callable[..., Any]
"""A call of gRPC, whose classes differ between blocking channels and those of asyncio"""
Metadata = tuple[tuple[str, str | bytes], ...]

_LONGEST_CONNECT = 86_400.0
"""Seconds of the longest attempt to connect."""


class Connected:
    """What has a connection, which neither a copy nor another process can use."""

    def __reduce__(self) -> NoReturn:
        raise ArgumentError(
            f"a {type(self).__name__} has a connection, which has no copy: send a Space, a Graph "
            "or configurations to other processes, and make a Client in each"
        )


@dataclass(frozen=True)
class Method(Generic[Response]):
    """A method of the server and its response; requests are serialized by the caller."""

    name: str
    """``Service/Method``"""
    response: type[Response]

    @property
    def path(self) -> str:
        """What gRPC calls."""
        return f"/hlorank.v1.{self.name}"


@dataclass(frozen=True)
class Channel:
    """How to open a channel."""

    address: str
    credentials: grpc.ChannelCredentials | None
    options: tuple[tuple[str, int], ...]
    headers: Metadata
    """Sent with every call."""

    def opened(self, grpc_: Any) -> Any:
        """Opens the channel with ``grpc`` or ``grpc.aio``."""
        if self.credentials is None:
            return grpc_.insecure_channel(self.address, self.options)
        return grpc_.secure_channel(self.address, self.credentials, self.options)

    def refused(self, error: Any) -> HlorankError:
        """Converts an error of gRPC on this channel."""
        return refused(error, self.address, self.credentials is not None)

    @classmethod
    def of(
        cls,
        address: str,
        credentials: grpc.ChannelCredentials | None,
        headers: Metadata,
        connect_timeout: float,
        message_bytes: int,
    ) -> "Channel":
        """Checks the options of a channel; windows and keep-alive match the Rust client."""
        longest = seconds(connect_timeout, "connect_timeout")
        if longest == 0:
            raise wrong("connect_timeout", connect_timeout, "more than 0 seconds, or None")
        connect = _LONGEST_CONNECT if longest is None else min(longest, _LONGEST_CONNECT)
        options = (
            ("grpc.max_send_message_length", message_bytes),
            ("grpc.max_receive_message_length", message_bytes),
            # Maximum duration of an attempt to connect, and the pauses between attempts.
            ("grpc.min_reconnect_backoff_ms", max(1, int(connect * 1000))),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 2_000),
            # A network that drops silently is noticed before a long call would end.
            ("grpc.keepalive_time_ms", 10_000),
            ("grpc.keepalive_timeout_ms", 10_000),
            # With gRPC's 64 KiB, messages of megabytes wait for windows on a fast network.
            ("grpc.http2.lookahead_bytes", 8 << 20),
            # Proxies from the environment are meant for the web, and would also proxy loopback.
            ("grpc.enable_http_proxy", 0),
        )
        return cls(address, credentials, options, headers)


class SyncTransport:
    """A channel that blocks the calling thread."""

    def __init__(self, channel: Channel):
        self._channel = channel
        self._process = os.getpid()
        self._is_closed = False
        self._calls: dict[str, Invoke] = {}
        self._opened: grpc.Channel = channel.opened(grpc)

    def call(
        self, method: Method[Response], message: bytes, metadata: Metadata, timeout: float | None
    ) -> Response:
        """Sends a request and returns the response. Raises HlorankError."""
        # Making one takes as long as a small call. Two threads that make one at a time waste one.
        if method.name not in self._calls:
            answers = method.response.FromString
            self._calls[method.name] = self._opened.unary_unary(method.path, None, answers)
        call = self._calls[method.name]
        _check_process(self._process)
        headers = self._channel.headers + metadata
        try:
            answer: Response | None = call(message, timeout=timeout, metadata=headers)
        except grpc.RpcError as error:
            # Without the cause, whose text is pages of gRPC's internals.
            raise self._channel.refused(error) from None
        except ValueError as error:  # what a closed channel raises
            if self._is_closed:
                raise ClosedError("the client is closed") from error
            raise
        return _whole(answer)

    def open(
        self, method: Method[Response], metadata: Metadata, timeout: float | None
    ) -> "SyncExchange[Response]":
        """Opens a stream."""
        if self._is_closed:
            raise ClosedError("the client is closed")
        _check_process(self._process)
        stream: Invoke = self._opened.stream_stream(method.path, None, method.response.FromString)
        return SyncExchange(self._channel, stream, metadata, timeout)

    def pause(self, seconds: float) -> None:
        """Waits."""
        time.sleep(seconds)

    def close(self) -> None:
        """Closes the channel and cancels calls in flight."""
        self._is_closed = True
        # The channel of a fork belongs to threads that are not there.
        if self._process == os.getpid():
            self._opened.close()


class SyncExchange(Generic[Response]):
    """A bidirectional stream; one thread may write while another reads."""

    def __init__(
        self, channel: Channel, stream: Invoke, metadata: Metadata, timeout: float | None
    ) -> None:
        self._channel = channel
        self._outgoing = _Outgoing()
        self._call = stream(self._outgoing, timeout=timeout, metadata=channel.headers + metadata)
        # A writer that waits for its turn must not wait for a call that has ended.
        self._call.add_done_callback(lambda _: self._outgoing.close())

    def write(self, message: bytes) -> bool:
        """Sends a message; returns False if the call has ended."""
        return self._outgoing.put(message)

    def done_writing(self) -> None:
        """Tells the server that no more messages follow."""
        self._outgoing.close()

    def read(self) -> Response | None:
        """Returns the next message; None at the end. Raises HlorankError."""
        try:
            message: Response | None = next(self._call, None)
        except grpc.RpcError as error:
            raise self._channel.refused(error) from None
        return message

    def cancel(self) -> None:
        """Cancels the call unless it has ended."""
        self._call.cancel()


class _Outgoing:
    """A queue of at most one outgoing message, which gRPC's thread iterates over.

    A queue without limit would take everything that a caller sends faster than the server reads.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._message: bytes | None = None
        self._is_closed = False

    def put(self, message: bytes) -> bool:
        """Queues a message once the queue is empty; returns False if the queue is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._message is None or self._is_closed)
            if self._is_closed:
                return False
            self._message = message
            self._changed.notify_all()
            return True

    def close(self) -> None:
        """Ends the iteration after the messages that were put."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> bytes:
        with self._changed:
            self._changed.wait_for(lambda: self._message is not None or self._is_closed)
            if self._message is None:
                raise StopIteration
            message = self._message
            self._message = None
            self._changed.notify_all()
            return message


class AsyncTransport:
    """A channel for asyncio, of which every event loop has its own.

    A channel of ``grpc.aio`` works only in the event loop that opened it, so one is opened for each
    loop that calls, and closed with it.
    """

    def __init__(self, channel: Channel):
        self._channel = channel
        self._process = os.getpid()
        self._streams = SyncTransport(channel)
        self._loops: WeakKeyDictionary[
            asyncio.AbstractEventLoop, tuple[grpc.aio.Channel, dict[str, Invoke]]
        ] = WeakKeyDictionary()
        self._is_closed = False

    async def call(
        self, method: Method[Response], message: bytes, metadata: Metadata, timeout: float | None
    ) -> Response:
        """Sends a request and returns the response. Raises HlorankError."""
        if self._is_closed:
            raise ClosedError("the client is closed")
        _check_process(self._process)
        headers = self._channel.headers + metadata
        call = self._call_of(method)
        try:
            answer: Response | None = await call(message, timeout=timeout, metadata=headers)
        except grpc.aio.AioRpcError as error:
            raise self._channel.refused(error) from None
        except (grpc.aio.UsageError, asyncio.CancelledError) as error:
            task = asyncio.current_task()
            # Closing a channel cancels its calls, as cancelling their task does.
            if self._is_closed and not (task and task.cancelling()):
                raise ClosedError("the client was closed during the call") from error
            raise
        return _whole(answer)

    def _call_of(self, method: Method[Response]) -> Invoke:
        """Returns the call of a method in the running event loop, for which it opens a channel."""
        loop = asyncio.get_running_loop()
        if loop not in self._loops:
            self._loops[loop] = self._channel.opened(grpc.aio), {}
        channel, calls = self._loops[loop]
        # A call of grpc.aio belongs to its channel, and so to the loop.
        if method.name not in calls:
            calls[method.name] = channel.unary_unary(method.path, None, method.response.FromString)
        return calls[method.name]

    async def open(
        self, method: Method[Response], metadata: Metadata, timeout: float | None
    ) -> "AsyncExchange[Response]":
        """Opens a stream."""
        return AsyncExchange(self._streams.open(method, metadata, timeout))

    async def pause(self, seconds: float) -> None:
        """Waits."""
        await asyncio.sleep(seconds)

    async def close(self) -> None:
        """Closes the channel of the running loop and cancels its calls."""
        self._is_closed = True
        self._streams.close()
        opened = self._loops.pop(asyncio.get_running_loop(), None)
        if opened is not None:
            await opened[0].close()
        # Those of other loops end when they are collected.
        self._loops.clear()


class AsyncExchange(Generic[Response]):
    """A blocking stream with two threads of its own, one that writes and one that reads.

    The streams of ``grpc.aio`` lose the reason why a server ended a call if it arrives during a
    write.
    """

    def __init__(self, exchange: SyncExchange[Response]):
        self._exchange = exchange
        self._threads: ThreadPoolExecutor | None = ThreadPoolExecutor(2, "hlorank-stream")

    async def write(self, message: bytes) -> bool:
        """Sends a message; returns False if the call has ended."""
        return await self._on_thread(lambda: self._exchange.write(message))

    async def done_writing(self) -> None:
        """Tells the server that no more messages follow."""
        self._exchange.done_writing()

    async def read(self) -> Response | None:
        """Returns the next message; None at the end. Raises RefusedError."""
        answer = await self._on_thread(self._exchange.read)
        if answer is None:
            # Nothing follows, and idle threads would live as long as the stream.
            self.cancel()
        return answer

    def cancel(self) -> None:
        """Cancels the call and ends its threads."""
        self._exchange.cancel()
        threads = self._threads
        self._threads = None
        if threads is not None:
            threads.shutdown(wait=False)

    async def _on_thread(self, blocking: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        try:
            # After the end nothing blocks, so a thread of the event loop is enough.
            return await loop.run_in_executor(self._threads, blocking)
        except (asyncio.CancelledError, HlorankError):
            # An abandoned thread would consume the message that the next one waits for.
            self.cancel()
            raise


def _whole(answer: Response | None) -> Response:
    """Returns an answer; gRPC has None for a call that ends well with none, or none it can read."""
    if answer is None:
        raise AnswerError(NO_MESSAGE)
    return answer


def _check_process(process: int) -> None:
    # Asked at every call: a fork keeps all objects, and says nothing of itself.
    here = os.getpid()
    if here != process:
        raise ClosedError(
            f"the client was made in process {process}, and this is its fork {here}, where gRPC's "
            "threads do not run: make a client in each process"
        )
