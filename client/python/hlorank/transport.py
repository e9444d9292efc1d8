"""The interface to gRPC, which the sync and the async client implement."""

from dataclasses import dataclass
from typing import Any, Protocol

from hlorank import messages
from hlorank.arguments import message_size, seconds


@dataclass(frozen=True)
class Method:
    """A method of the server and its response message; requests are serialized by the caller."""

    path: str
    response: Any


_COST_MODEL = "/hlorank.v1.CostModelService"
_MODELS = "/hlorank.v1.ModelService"
PUT_GRAPH = Method(f"{_COST_MODEL}/PutGraph", messages.PutGraphResponse)
RANK_CONFIGS = Method(f"{_COST_MODEL}/RankConfigs", messages.RankConfigsResponse)
SUGGEST_CONFIGS = Method(f"{_COST_MODEL}/SuggestConfigs", messages.SuggestConfigsResponse)
REPORT_MEASUREMENTS = Method(
    f"{_COST_MODEL}/ReportMeasurements", messages.ReportMeasurementsResponse
)
LIST_MEASUREMENTS = Method(f"{_COST_MODEL}/ListMeasurements", messages.ListMeasurementsResponse)
GET_MEASURED_GRAPH = Method(f"{_COST_MODEL}/GetMeasuredGraph", messages.GetMeasuredGraphResponse)
DELETE_MEASUREMENTS = Method(
    f"{_COST_MODEL}/DeleteMeasurements", messages.DeleteMeasurementsResponse
)
RANK_CONFIGS_STREAM = Method(f"{_COST_MODEL}/RankConfigsStream", messages.RankConfigsStreamResponse)
LIST_MODELS = Method(f"{_MODELS}/ListModels", messages.ListModelsResponse)
GET_MODEL = Method(f"{_MODELS}/GetModel", messages.GetModelResponse)
COMPARE_MODELS = Method(f"{_MODELS}/CompareModels", messages.CompareModelsResponse)

Metadata = tuple[tuple[str, str | bytes], ...]


class Exchange(Protocol):
    """A bidirectional stream."""

    async def write(self, message: bytes) -> bool:
        """Sends a message; returns False if the call has ended."""

    async def done_writing(self) -> None:
        """Tells the server that no more messages follow."""

    async def read(self) -> Any:
        """Returns the next message; None at the end. Raises RefusedError."""

    def cancel(self) -> None:
        """Cancels the call unless it has ended."""


class Transport(Protocol):
    """A connection. The methods of a blocking connection never suspend."""

    async def call(
        self, method: Method, message: bytes, metadata: Metadata, timeout: float | None
    ) -> Any:
        """Sends a request and returns the response. Raises RefusedError."""

    async def open(self, method: Method, metadata: Metadata, timeout: float | None) -> Exchange:
        """Opens a stream."""

    async def pause(self, seconds: float) -> None:
        """Waits for ``seconds``."""


class Calls:
    """The unary calls of one channel, blocking or not."""

    def __init__(self, channel: Any):
        self._channel = channel
        self._calls: dict[str, Any] = {}

    def of(self, method: Method) -> Any:
        """Returns the call of a method; it is created on first use."""
        call = self._calls.get(method.path)
        if call is None:
            call = self._channel.unary_unary(method.path, None, method.response.FromString)
            self._calls[method.path] = call
        return call


_LONGEST_CONNECT = 86_400.0
"""Seconds of the longest attempt to connect."""


def channel_options(connect_timeout: Any, message_bytes: Any) -> list[tuple[str, int]]:
    """Returns the options of a channel; windows and keep-alive match the Rust client."""
    longest = seconds(connect_timeout, "connect_timeout")
    connect = _LONGEST_CONNECT if longest is None else min(longest, _LONGEST_CONNECT)
    size = message_size(message_bytes, "message_bytes")
    return [
        ("grpc.max_send_message_length", size),
        ("grpc.max_receive_message_length", size),
        # Maximum duration of an attempt to connect, and the pauses between attempts.
        ("grpc.min_reconnect_backoff_ms", max(1, int(connect * 1000))),
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", 2_000),
        ("grpc.keepalive_time_ms", 10_000),
        ("grpc.keepalive_timeout_ms", 10_000),
        ("grpc.http2.lookahead_bytes", 8 << 20),
        # Proxies from the environment are meant for the web, and would also proxy loopback.
        ("grpc.enable_http_proxy", 0),
    ]
