"""A gRPC server that keeps what it was sent: for what hlorank-server cannot show."""

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
    address: str = ""
    calls: list[tuple[str, dict[str, Any], bytes]] = field(default_factory=list)

    def service(self, call: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        """Every method there is."""

        def refuse(message: bytes, context: grpc.ServicerContext) -> bytes:
            self.calls.append((call.method, dict(call.invocation_metadata), message))
            context.set_trailing_metadata(self.trailers)
            context.abort(self.code, "refused")

        return grpc.unary_unary_rpc_method_handler(refuse)


@contextmanager
def recording_server(
    code: grpc.StatusCode, trailers: tuple[tuple[str, bytes], ...] = ()
) -> Iterator[Recorded]:
    """A server that answers every call with a status."""
    recorded = Recorded(code, trailers)
    server = grpc.server(ThreadPoolExecutor(2), handlers=[recorded])
    recorded.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        yield recorded
    finally:
        server.stop(None)
