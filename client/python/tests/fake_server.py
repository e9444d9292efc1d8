"""A gRPC server with a script: it keeps what it was sent, and answers what no real server does."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.protobuf.message import Message

from hlorank import Client
from hlorank.wire import messages


@dataclass
class FakeServer(grpc.GenericRpcHandler):
    """Answers every call alike: one answer per message, and then a status."""

    answers: tuple[Message | bytes, ...] = ()
    code: grpc.StatusCode | None = None
    """The status, None for OK."""
    trailers: tuple[tuple[str, bytes], ...] = ()
    answered: int | None = None
    """Number of calls that get the status, None for all. Others end at their deadline."""
    address: str = ""
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    """Method and headers of messages, in the order they came."""
    requests: list[Any] = field(default_factory=list)
    """The messages."""
    ended: threading.Event = field(default_factory=threading.Event)
    """Set where a call has ended."""

    def service(self, call: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        """Every method there is."""
        method = call.method.rpartition("/")[2]
        kind = getattr(messages, f"{method}Request")

        def serve(sent: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
            over = threading.Event()
            context.add_callback(over.set)
            context.add_callback(self.ended.set)
            # The call ends after the message that follows the answers, or after the last one.
            for answer in (*self.answers, None):
                message = next(sent, None)
                if message is not None:
                    self.calls.append((method, dict(call.invocation_metadata)))
                    self.requests.append(kind.FromString(message))
                if answer is not None:
                    yield answer if isinstance(answer, bytes) else answer.SerializeToString()
            if self.code is not None:
                if self.answered is not None and len(self.calls) > self.answered:
                    over.wait()
                context.set_trailing_metadata(self.trailers)
                context.abort(self.code, "refused")

        return grpc.stream_stream_rpc_method_handler(serve)


@contextmanager
def fake_server(*answers: Message | bytes, **script: Any) -> Iterator[FakeServer]:
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
def answered(*answers: Message | bytes) -> Iterator[Client]:
    """The client of a server that gives these answers."""
    with fake_server(*answers) as server, Client(server.address) as client:
        yield client


def ranking_of(scores: list[float], /, **fields: Any) -> Message:
    """The answer of a server that ranks the first configurations in their order."""
    plain = {"ranking": range(len(scores)), "ranking_scores": scores}
    plain |= {"scored_configs": len(scores), "graph_hash": bytes(32)}
    return messages.RankConfigsResponse(**(plain | fields))
