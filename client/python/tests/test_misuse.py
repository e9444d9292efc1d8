"""One clear error each for a client that is used where it cannot work, and for other programs."""

import os
import re

import grpc
import pytest
from fake_server import fake_server
from servers import REPOSITORY

from hlorank import Client, ClosedError, Graph, Tiles, UnsupportedError
from hlorank.wire import defaults

GRAPH = Graph.from_hlo_text("HloModule m", task="tile")
TILES = Tiles(output_bounds=[[1]])


def test_a_client_is_refused_in_a_fork_of_its_process(tmp_path):
    client = Client("127.0.0.1:1", retries=0)
    said = tmp_path / "said"
    child = os.fork()
    if child == 0:
        try:
            with pytest.raises(ClosedError) as refused:
                client.rank(GRAPH, TILES)
            with pytest.raises(ClosedError):
                client.rank_stream(GRAPH)
            said.write_text(str(refused.value))
            client.close()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert re.search(
        r"made in process \d+, and this is its fork \d+.*make a client in each", said.read_text()
    )


def test_a_server_without_the_method_is_older_or_another_program():
    with (
        fake_server(code=grpc.StatusCode.UNIMPLEMENTED) as server,
        Client(server.address) as client,
        pytest.raises(UnsupportedError, match="no server of hlorank, or one that is older"),
    ):
        client.list_models()
    assert len(server.calls) == 1


def test_the_page_has_the_defaults_of_the_client():
    page = " ".join((REPOSITORY / "client/python/README.md").read_text().split())
    assert f"`timeout` (default: {defaults.TIMEOUT:g} seconds)" in page
    assert f"until {defaults.PATIENCE:g} seconds after its first failure" in page
    pauses = f"after {defaults.FIRST_PAUSE:g} s, and after twice the previous pause, at most"
    assert f"{pauses} {defaults.LONGEST_PAUSE:g} s" in page
