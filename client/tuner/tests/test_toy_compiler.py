"""A compiler that is registered by one line is tuned through the search and a real server."""

import pytest

from hlorank import Client
from hlorank_tune import ServerError, Settings, read_run, search
from hlorank_tune.command import COMPILERS, command_of, parser

SIZES = ("toy", "64x96")


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    monkeypatch.setitem(COMPILERS, "toy", "toy.command")


def compiler():
    given = parser().parse_args(SIZES)
    return command_of(given.command).compiler_of(given)


def test_the_command_line_has_it():
    assert "matrix product" in parser().format_help()
    assert compiler().program == "product-64x96"


def test_its_program_is_tuned_with_the_model(server, tmp_path):
    run = search(compiler(), server, tmp_path)
    assert len(run.measurements) == 24 and run.errors == []
    assert all(m.score is not None for m in run.measurements[1:])
    assert len(run.parts) == 3 and run.final_ratio < 0.6
    assert (tmp_path / "tile.txt").read_text() == str(run.winner.candidate["tile"])
    assert read_run(tmp_path)[1] == run == search(compiler(), server, tmp_path)


def test_its_program_is_tuned_without_a_model(tmp_path):
    run = search(compiler(), None, tmp_path)
    assert not run.with_model and len(run.measurements) == 24
    everything = Settings(measurements=1000)
    run = search(compiler(), None, tmp_path / "everything", everything)
    assert len(run.measurements) == 7 * 12 and run.winner.candidate == {"tile": [8, 8]}


def test_a_model_that_does_not_rank_it_is_an_error(server, tmp_path):
    with Client(server) as client, pytest.raises(ServerError, match="does not rank this program"):
        search(compiler(), client, tmp_path, model="layout-xla-cpu")
