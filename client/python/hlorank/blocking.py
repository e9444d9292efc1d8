"""The gRPC transport of the blocking client."""

import threading
import time
from collections.abc import Coroutine
from typing import Any, Self, TypeVar

import grpc

from hlorank.errors import ClosedError, refused
from hlorank.transport import Calls, Metadata, Method

T = TypeVar("T")


def run_to_end(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine to its end; over a blocking transport it never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError("a blocking transport suspended")


def channel(
    address: str, credentials: grpc.ChannelCredentials | None, options: list[tuple[str, int]]
) -> grpc.Channel:
    """Opens a channel, over TLS if there are credentials."""
    if credentials is None:
        return grpc.insecure_channel(address, options)
    return grpc.secure_channel(address, credentials, options)


class BlockingTransport:
    """A transport that blocks the calling thread, so its coroutines never suspend."""

    def __init__(self, channel: grpc.Channel, headers: Metadata):
        self._channel = channel
        self._calls = Calls(channel)
        self._headers = headers
        self._is_closed = False

    async def call(
        self, method: Method, message: bytes, metadata: Metadata, timeout: float | None
    ) -> Any:
        call = self._calls.of(method)
        try:
            return call(message, timeout=timeout, metadata=self._headers + metadata)
        except grpc.RpcError as error:
            raise refused(error) from None
        except ValueError as error:  # what a closed channel raises
            raise self._closed(error) from error

    async def open(
        self, method: Method, metadata: Metadata, timeout: float | None
    ) -> "BlockingExchange":
        if self._is_closed:
            raise ClosedError("the client is closed")
        stream: Any = self._channel.stream_stream(method.path, None, method.response.FromString)
        return BlockingExchange(stream, self._headers + metadata, timeout)

    async def pause(self, seconds: float) -> None:
        time.sleep(seconds)

    def close(self) -> None:
        """Closes the channel and cancels calls in flight."""
        self._is_closed = True
        self._channel.close()

    def _closed(self, error: ValueError) -> Exception:
        """Returns the error of a call on a closed channel, or the error as it is."""
        return ClosedError("the client is closed") if self._is_closed else error


class BlockingExchange:
    """A bidirectional stream; one thread may write while another reads."""

    def __init__(self, stream: Any, metadata: Metadata, timeout: float | None):
        self._outgoing = _Outgoing()
        self._call = stream(self._outgoing, timeout=timeout, metadata=metadata)
        self._call.add_done_callback(lambda _: self._outgoing.close())

    async def write(self, message: bytes) -> bool:
        return self._outgoing.put(message)

    async def done_writing(self) -> None:
        self._outgoing.close()

    async def read(self) -> Any:
        try:
            return next(self._call, None)
        except grpc.RpcError as error:
            raise refused(error) from None

    def cancel(self) -> None:
        self._call.cancel()


class _Outgoing:
    """A queue of at most one outgoing message, which gRPC's thread iterates over."""

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
