"""A compiler that is registered by one line is tuned through the search and a real server."""

import json

import pytest

from hlorank import ArgumentError, Client
from hlorank_tune import JournalError, ServerError, Settings, read_run, search
from hlorank_tune.command import COMPILERS, command_of, parser
from hlorank_tune.journal import RESULTS_FILE

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


@pytest.mark.parametrize(
    ("model", "words"),
    [("layout-xla-cpu", "does not rank this program"), ("tile-iree-cpu@999", "999")],
)
def test_a_model_that_refuses_is_an_error_before_anything_is_measured(
    server, tmp_path, model, words
):
    with Client(server) as client, pytest.raises(ServerError, match=words):
        search(compiler(), client, tmp_path, model=model)
    assert read_run(tmp_path)[1].measurements == []


def test_a_name_of_no_model_is_refused_before_anything_is_written(server, tmp_path):
    with pytest.raises(ArgumentError, match="NAME@VERSION"):
        search(compiler(), server, tmp_path / "none", model="tile-iree-cpu@0")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    "settings", [Settings(seconds=0), Settings(seconds=1e-9), Settings(measurements=0)]
)
def test_without_time_or_measurements_the_program_alone_is_measured(server, tmp_path, settings):
    run = search(compiler(), server, tmp_path, settings)
    assert [m.candidate for m in run.measurements] == [{}]
    assert (run.predictions, run.best) == (0, 0)


@pytest.mark.parametrize("with_model", [True, False])
def test_a_search_that_ended_goes_on_with_a_larger_budget(server, tmp_path, with_model):
    address = server if with_model else None
    first = search(compiler(), address, tmp_path, Settings(measurements=3))
    larger = Settings(measurements=6)
    run = search(compiler(), address, tmp_path, larger)
    assert run.measurements[:3] == first.measurements
    assert len(run.measurements) == 6 and len(run.parts) == 3
    assert read_run(tmp_path)[0]["measurements"] == 6
    assert read_run(tmp_path)[1] == run == search(compiler(), address, tmp_path, larger)


@pytest.mark.parametrize("row", [{"candidate": {}}, {"seconds": "x"}, {"best": {"9": []}}])
def test_a_row_of_another_search_is_told_by_its_number(tmp_path, row):
    search(compiler(), None, tmp_path, Settings(measurements=1))
    results = tmp_path / RESULTS_FILE
    first, second, *_ = results.read_text().splitlines()
    results.write_text("\n".join([first, second, json.dumps(row), ""]))
    with pytest.raises(JournalError, match="line 3"):
        search(compiler(), None, tmp_path, Settings(measurements=1))
