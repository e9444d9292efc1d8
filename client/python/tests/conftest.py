"""Fixtures: servers of tests, and graphs."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from measured import MeasuredGraph, read_graphs
from servers import DATA, REPOSITORY, command_line, run_empty_server, run_server

from hlorank import Client


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    with run_server() as address:
        yield address


@pytest.fixture(scope="module")
def ranker(server: str) -> Iterator[Client]:
    """The client of a server with models."""
    with Client(server) as client:
        yield client


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server without models that keeps measurements; tests of a module share it."""
    with run_empty_server(tmp_path_factory.mktemp("store")) as server:
        yield server.address


@pytest.fixture
def client(store: str) -> Iterator[Client]:
    with Client(store, timeout=10) as client:
        yield client


@pytest.fixture(scope="module")
def keeping(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """The client of a server with models that keeps measurements."""
    path = tmp_path_factory.mktemp("kept") / "measurements"
    with run_server(f"--measurements={path}") as address, Client(address) as client:
        yield client


@pytest.fixture(scope="module", params=["with a store", "without a store"])
def learner(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Client]:
    """The client of a server without models, with a store and without one."""
    folder = tmp_path_factory.mktemp("empty")
    kept = str(folder / "measurements") if request.param == "with a store" else "off"
    with (
        run_server(f"--models={folder}", f"--measurements={kept}") as address,
        Client(address) as client,
    ):
        yield client


@pytest.fixture(scope="session")
def layout_graph() -> MeasuredGraph:
    return read_graphs(DATA / "measured/layout_random_window_reversed.pb")[0]


@pytest.fixture(scope="session")
def tile_graph() -> MeasuredGraph:
    return read_graphs(DATA / "measured/tile_kernels.pb")[0]


@pytest.fixture
def shell(tmp_path: Path) -> Callable[..., str]:
    """Runs a command of the page in an empty folder; returns what it printed."""
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    folders = Path(sys.executable).parent, command_line().parent, os.environ["PATH"]
    path = ":".join(map(str, folders))

    def run(command: str, **variables: str) -> str:
        known = {"HLORANK": str(REPOSITORY), "PATH": path} | variables
        done = subprocess.run(
            ["bash", "-euc", command],
            cwd=tmp_path,
            env=os.environ | known,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout

    return run
