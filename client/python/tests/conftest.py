"""Fixtures: servers of tests, and graphs."""

from collections.abc import Iterator

import pytest
from measured import MeasuredGraph, read_graphs
from servers import DATA, run_empty_server, run_server


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    with run_server() as address:
        yield address


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server without models that keeps measurements; tests of a module share it."""
    with run_empty_server(tmp_path_factory.mktemp("store")) as server:
        yield server.address


@pytest.fixture(scope="session")
def layout_graph() -> MeasuredGraph:
    return read_graphs(DATA / "measured/layout_random_window_reversed.pb")[0]


@pytest.fixture(scope="session")
def tile_graph() -> MeasuredGraph:
    return read_graphs(DATA / "measured/tile_kernels.pb")[0]
