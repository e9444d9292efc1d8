import socket
import threading
import time

import grpc
import pytest
from fake_server import fake_server
from google.protobuf.any_pb2 import Any
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from servers import run_server, server_program

from hlorank import (
    Client,
    DeadlineError,
    HandshakeError,
    OverloadedError,
    RefusedError,
    UnavailableError,
)
from hlorank.wire.retry import Retry


def retry_info(milliseconds):
    delay, packed = Duration(), Any()
    delay.FromMilliseconds(milliseconds)
    packed.Pack(RetryInfo(retry_delay=delay))
    return (("grpc-status-details-bin", Status(details=[packed]).SerializeToString()),)


def test_every_call_about_a_graph_has_its_route(tile_graph):
    with fake_server(code=grpc.StatusCode.INTERNAL) as server, Client(server.address) as client:
        for ask in (
            lambda: client.put_graph(tile_graph.graph),
            lambda: client.rank(tile_graph.graph, tile_graph.configurations),
            lambda: client.rank_stream(tile_graph.graph),
        ):
            with pytest.raises(RefusedError):
                ask()
    route = tile_graph.graph.route
    routes = [(method, headers["x-hlorank-route"]) for method, headers in server.calls]
    methods = ("PutGraph", "RankConfigs", "RankConfigsStream")
    assert routes == [(method, route) for method in methods]


@pytest.mark.parametrize(
    ("code", "trailers", "calls"),
    [
        (grpc.StatusCode.UNAVAILABLE, (), 3),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, retry_info(20), 3),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, (), 1),
        (grpc.StatusCode.INVALID_ARGUMENT, (), 1),
        (grpc.StatusCode.FAILED_PRECONDITION, (), 1),
        (grpc.StatusCode.INTERNAL, retry_info(20), 1),
        (grpc.StatusCode.CANCELLED, (), 1),
    ],
)
def test_only_what_may_pass_is_tried_again(code, trailers, calls, tile_graph):
    with (
        fake_server(code=code, trailers=trailers) as server,
        Client(server.address, retries=2) as client,
    ):
        with pytest.raises(RefusedError) as refused:
            client.rank(tile_graph.graph, tile_graph.configurations)
        assert refused.value.code == code
        assert refused.value.retry_after == (0.02 if trailers else None)
        assert len(server.calls) == calls


def test_nothing_is_tried_again_past_the_deadline():
    with fake_server(
        code=grpc.StatusCode.RESOURCE_EXHAUSTED, trailers=retry_info(60_000)
    ) as server:
        start = time.monotonic()
        with Client(server.address, timeout=20) as client, pytest.raises(OverloadedError):
            client.list_models()
        assert time.monotonic() - start < 20
        assert len(server.calls) == 1


def test_a_server_that_starts_late_is_found():
    server_program()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    found = []
    client = Client(address)
    asking = threading.Thread(target=lambda: found.extend(client.list_models(timeout=60)))
    asking.start()
    with run_server(f"--listen={address}"):
        asking.join(60)
        client.close()
    assert found


def test_an_unavailable_server_is_asked_again_as_long_as_the_caller_gave():
    with fake_server(code=grpc.StatusCode.UNAVAILABLE) as server:
        begin = time.monotonic()
        with Client(server.address, timeout=4) as client, pytest.raises(UnavailableError):
            client.list_models()
        spent = time.monotonic() - begin
    assert len(server.calls) > 4
    # The last pause would have been longer than the rest of the time.
    # A busy machine takes a while to notice the end.
    assert 4 - 1.5 < spent < 5


def test_a_retry_without_an_answer_leaves_the_reason_of_the_attempt_before():
    with (
        fake_server(code=grpc.StatusCode.UNAVAILABLE, answered=1) as server,
        Client(server.address, timeout=4) as client,
        pytest.raises(UnavailableError, match="refused") as raised,
    ):
        client.list_models()
    assert len(server.calls) == 2 and isinstance(raised.value.__cause__, DeadlineError)


def test_a_pause_doubles_up_to_a_second():
    error = UnavailableError(grpc.StatusCode.UNAVAILABLE, "")
    for retries, least in enumerate([0.1, 0.2, 0.4, 0.8, 1.0, 1.0]):
        assert least <= Retry().pause(error, retries) <= 1.5 * least
    assert Retry().pause(error, 10**6) <= 1.5 and Retry(2).pause(error, 2) is None
    misfit = HandshakeError(grpc.StatusCode.UNAVAILABLE, "")
    assert Retry().pause(misfit, 0) is None, "no retry changes a certificate"


def test_a_call_without_a_deadline_is_retried_for_a_limited_time(monkeypatch):
    monkeypatch.setattr("hlorank.wire.defaults.PATIENCE", 0.5)
    with (
        fake_server(code=grpc.StatusCode.UNAVAILABLE) as server,
        Client(server.address, timeout=None) as client,
        pytest.raises(UnavailableError),
    ):
        client.list_models()
    assert 2 <= len(server.calls) <= 4
