"""gRPC servers that keep what they were sent, or answer wrong: what hlorank-server cannot show."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc


@dataclass
class Recorded(grpc.GenericRpcHandler):
    """Calls in the order they came: method, headers, message."""

    code: grpc.StatusCode
    trailers: tuple[tuple[str, bytes], ...] = ()
    answered: int | None = None
    """Number of calls that are answered, None for all. Others end at their deadline."""
    address: str = ""
    calls: list[tuple[str, dict[str, Any], bytes]] = field(default_factory=list)

    def service(self, call: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        """Every method there is."""

        def refuse(message: bytes, context: grpc.ServicerContext) -> bytes:
            self.calls.append((call.method, dict(call.invocation_metadata), message))
            if self.answered is not None and len(self.calls) > self.answered:
                ended = threading.Event()
                context.add_callback(ended.set)
                ended.wait()
            context.set_trailing_metadata(self.trailers)
            context.abort(self.code, "refused")

        return grpc.unary_unary_rpc_method_handler(refuse)


@contextmanager
def recording_server(
    code: grpc.StatusCode,
    trailers: tuple[tuple[str, bytes], ...] = (),
    answered: int | None = None,
) -> Iterator[Recorded]:
    """A server that answers calls with a status."""
    recorded = Recorded(code, trailers, answered)
    with _serving(recorded) as recorded.address:
        yield recorded


@dataclass
class Answers(grpc.GenericRpcHandler):
    """Answers of every call, whatever it says: one per message, and one after the last message."""

    answers: list[bytes]
    address: str = ""
    ended: threading.Event = field(default_factory=threading.Event)
    """Set where a call has ended."""

    def service(self, call: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        """Every method there is."""

        def answer(messages: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
            context.add_callback(self.ended.set)
            for answer in self.answers:
                next(messages, None)
                yield answer
            # The call ends after the next message, or after the last one.
            next(messages, None)

        return grpc.stream_stream_rpc_method_handler(answer)


@contextmanager
def answering_server(*answers: bytes) -> Iterator[Answers]:
    """A server that gives these answers."""
    answering = Answers(list(answers))
    with _serving(answering) as answering.address:
        yield answering


@contextmanager
def _serving(handler: grpc.GenericRpcHandler) -> Iterator[str]:
    server = grpc.server(ThreadPoolExecutor(2), handlers=[handler])
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        yield address
    finally:
        server.stop(None)
