"""A gRPC server with a script: it keeps what it was sent, and answers what no real server does."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc

from hlorank import Client


@dataclass
class FakeServer(grpc.GenericRpcHandler):
    """Answers every call alike: one answer per message, and then a status."""

    answers: tuple[bytes, ...] = ()
    code: grpc.StatusCode | None = None
    """The status, None for OK."""
    trailers: tuple[tuple[str, bytes], ...] = ()
    answered: int | None = None
    """Number of calls that get the status, None for all. Others end at their deadline."""
    address: str = ""
    calls: list[tuple[str, dict[str, Any], bytes]] = field(default_factory=list)
    """Messages in the order they came: method, headers, message."""
    ended: threading.Event = field(default_factory=threading.Event)
    """Set where a call has ended."""

    def service(self, call: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        """Every method there is."""

        def serve(messages: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
            over = threading.Event()
            context.add_callback(over.set)
            context.add_callback(self.ended.set)
            # The call ends after the message that follows the answers, or after the last one.
            for answer in (*self.answers, None):
                message = next(messages, None)
                if message is not None:
                    self.calls.append((call.method, dict(call.invocation_metadata), message))
                if answer is not None:
                    yield answer
            if self.code is not None:
                if self.answered is not None and len(self.calls) > self.answered:
                    over.wait()
                context.set_trailing_metadata(self.trailers)
                context.abort(self.code, "refused")

        return grpc.stream_stream_rpc_method_handler(serve)


@contextmanager
def fake_server(*answers: bytes, **script: Any) -> Iterator[FakeServer]:
    """A server with these answers, and what else ``FakeServer`` has."""
    fake = FakeServer(answers, **script)
    server = grpc.server(ThreadPoolExecutor(2), handlers=[fake])
    fake.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        yield fake
    finally:
        server.stop(None)


@contextmanager
def answered(*answers: bytes) -> Iterator[Client]:
    """The client of a server that gives these answers."""
    with fake_server(*answers) as server, Client(server.address) as client:
        yield client
