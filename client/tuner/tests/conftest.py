"""Fixtures of the tests of the tuner."""

from collections.abc import Iterator

import pytest
from measured import MeasuredGraph, read_graphs
from servers import DATA, run_server


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    with run_server() as address:
        yield address


@pytest.fixture(scope="session")
def layout_graph() -> MeasuredGraph:
    return read_graphs(DATA / "measured/layout_random_window_reversed.pb")[0]
