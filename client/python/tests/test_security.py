"""TLS, and tokens."""

import grpc
import pytest
from servers import TOKEN, run_secured_server

from hlorank import Client, RefusedError


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    """The address of a server, and credentials that trust its certificate."""
    folder = tmp_path_factory.mktemp("authority")
    with run_secured_server(folder) as address:
        yield address, grpc.ssl_channel_credentials((folder / "localhost.crt").read_bytes())


def test_calls_go_over_tls_with_a_token(secured, tile_graph):
    server, credentials = secured
    for address in (server, f"https://{server}"):
        with Client(address, credentials=credentials, token=TOKEN) as client:
            best = client.rank(tile_graph.graph, tile_graph.configurations).best
            with client.rank_stream(tile_graph.graph) as stream:
                stream.send(tile_graph.configurations)
                assert stream.finish().best.tolist() == best.tolist()


@pytest.mark.parametrize(
    ("token", "reason"), [(None, "TOKEN_MISSING"), ("another", "TOKEN_UNKNOWN")]
)
def test_calls_without_a_known_token_are_refused(secured, token, reason):
    address, credentials = secured
    with (
        Client(address, credentials=credentials, token=token) as client,
        pytest.raises(RefusedError) as refused,
    ):
        client.list_models()
    error = refused.value
    assert (error.code, error.reason) == (grpc.StatusCode.UNAUTHENTICATED, reason)
    assert "another" not in str(error)
