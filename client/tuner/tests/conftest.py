"""Fixtures of the tests of the tuner."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from measured import MeasuredGraph, read_graphs
from servers import DATA, run_server


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    with run_server() as address:
        yield address


SCRIPT = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from programs import convnet, product, smoothing
network, matmul, program, number = convnet(), product(), smoothing(), 7
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A script with programs, in the working folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    path = tmp_path / "programs_to_tune.py"
    path.write_text(SCRIPT)
    return path


@pytest.fixture(scope="session")
def layout_graph() -> MeasuredGraph:
    return read_graphs(DATA / "measured/layout_random_window_reversed.pb")[0]
