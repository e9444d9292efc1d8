"""TLS, and tokens."""

from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from servers import TOKEN, run_secured_server

from hlorank import Client, RefusedError


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the certificate of the server."""
    return tmp_path_factory.mktemp("authority")


@pytest.fixture(scope="module")
def secured(authority: Path) -> Iterator[str]:
    with run_secured_server(authority) as address:
        yield address


@pytest.fixture
def credentials(secured: str, authority: Path) -> grpc.ChannelCredentials:
    return grpc.ssl_channel_credentials((authority / "localhost.crt").read_bytes())


def test_calls_go_over_tls_with_a_token(secured, credentials, tile_graph):
    for address in (secured, f"https://{secured}"):
        with Client(address, credentials=credentials, token=TOKEN) as client:
            best = client.rank(tile_graph.graph, tile_graph.configurations).best
            with client.rank_stream(tile_graph.graph) as stream:
                stream.send(tile_graph.configurations)
                assert stream.finish().best.tolist() == best.tolist()


def test_calls_without_a_known_token_are_refused(secured, credentials):
    for token, reason in ((None, "TOKEN_MISSING"), ("another", "TOKEN_UNKNOWN")):
        client = Client(secured, credentials=credentials, token=token)
        with client, pytest.raises(RefusedError) as refused:
            client.list_models()
        assert refused.value.code == grpc.StatusCode.UNAUTHENTICATED
        assert refused.value.reason == reason
        assert "another" not in str(refused.value)
