"""The search for schedules of a user's pipeline, with Halide."""

from pathlib import Path

import pytest

pytest.importorskip("halide", reason="halide is not installed")
pytest.importorskip("rich", reason="rich is not installed")

from hlorank import Client
from hlorank.errors import HlorankError
from hlorank.halide.script import PipelineFunction
from hlorank.measure.rounds import Protocol
from hlorank.tune import Settings, search
from hlorank.tune.command import main
from hlorank.tune.halide import HalideCompiler

EXAMPLE = Path(__file__).parents[3] / "client/python/examples/tune_unsharp.py"
SCRIPT = """
import os
import halide as hl
from hlorank.halide.pipeline import Pipeline

calls = []

def blur(boundary=True, estimates=True):
    x, y = hl.Var("x"), hl.Var("y")
    image, scale = hl.ImageParam(hl.UInt(16), 2, "image"), hl.Param(hl.Float(32), "scale")
    if estimates:
        image.set_estimates([(0, 64), (0, 48)])
    scale.set_estimate(0.5)
    inside = hl.BoundaryConditions.repeat_edge(image) if boundary else image
    across, out = hl.Func("across"), hl.Func("out")
    across[x, y] = hl.f32(inside[x, y]) + hl.f32(inside[x + 1, y])
    out[x, y] = scale * (across[x, y] + across[x, y + 1])
    return Pipeline(out, (64, 48), [image, scale])

def dies_once():
    calls.append(1)
    died = __file__ + ".died"
    # The inputs are made of the first one, and the greedy schedule is drawn for the second.
    if len(calls) == 3 and not os.path.exists(died):
        open(died, "w").close()
        os.abort()
    return blur()

def without_margin():
    return blur(boundary=False)

def without_estimates():
    return blur(estimates=False)

def without_input():
    pipeline = blur()
    return Pipeline(pipeline.output, (64, 48), pipeline.inputs[:1])

def raises():
    return 1 // 0

def something_else():
    return 7
"""
SETTINGS = Settings("drawn", predictions=5, measurements=2, top_k=2)


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "pipelines.py"
    path.write_text(SCRIPT)
    return path


@pytest.fixture(autouse=True)
def _short(monkeypatch):
    short = Protocol(warmups=1, rounds=3, most_rounds=3, seconds=0.01, tries=0, clock="process")
    monkeypatch.setattr(HalideCompiler, "search", short)


def tuned(script, name, out, server=None, settings=SETTINGS):
    compiler = HalideCompiler(name, PipelineFunction(str(script), name))
    return search(compiler, server, out, settings, target="a board")


def test_schedules_of_a_pipeline_are_drawn_and_measured(script, tmp_path, capsys):
    command = ["halide", f"{script}:blur", "--without-model", "--draws=5"]
    assert main([*command, "--measurements=2", f"--out={tmp_path / 'out'}"]) == 0
    printed = capsys.readouterr().out
    assert "measured" in printed and "blur: " in printed and "report.md" in printed
    text = (tmp_path / "out/schedule.h").read_text()
    assert text.startswith("// blur: ") and "pipeline.get_func" in text


def test_a_draw_of_which_the_process_dies_is_a_row(script, tmp_path):
    run = tuned(script, "dies_once", tmp_path)
    assert run.left_alone["draw 1: beam 8"] == "the search crashed with SIGABRT"
    assert run.measurements[0].outcome.nanoseconds > 0 and run.winner is not None


def test_a_schedule_that_reads_beyond_its_input_is_a_row(script, tmp_path):
    run = tuned(script, "without_margin", tmp_path)
    assert run.fastest() == []
    messages = [measurement.outcome.message for measurement in run.measurements]
    assert all("Input buffer image is accessed at" in message for message in messages)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("without_estimates", "input image has no estimates"),
        ("without_input", "the pipeline also reads scale"),
        ("raises", "ZeroDivisionError"),
        ("something_else", "returns a int, expected a hlorank.halide.pipeline.Pipeline"),
        ("missing", "has no function or generator class missing"),
    ],
)
def test_a_function_that_builds_no_pipeline_is_refused(script, tmp_path, name, message):
    with pytest.raises(HlorankError, match=message):
        tuned(script, name, tmp_path)


def test_a_server_that_does_not_answer_ends_the_search_before_it_draws(script, tmp_path):
    with pytest.raises(HlorankError, match="no server answers"):
        tuned(script, "blur", tmp_path, "127.0.0.1:1")


def test_a_second_search_knows_what_the_first_one_measured(script, tmp_path, client_tests):
    settings = Settings("drawn", predictions=12, measurements=4, top_k=4)
    with client_tests.run_server(f"--measurements={tmp_path / 'measurements'}") as address:
        first, second = (tuned(script, "blur", tmp_path / name, address, settings) for name in "ab")
        with Client(address) as client:
            (kept,) = client.list_measurements("a board").graphs
    measured = [m for m in first.measurements if m.outcome.nanoseconds]
    assert f"{len(measured)} measurements are kept for later searches on 'a board'" == first.kept
    every = [m for run in (first, second) for m in run.measurements if m.outcome.nanoseconds]
    times = [m.outcome.nanoseconds for m in every]
    assert sorted(kept.seconds * 1e9) == pytest.approx(sorted(times))
    scores = {str(m.candidate): m.score for m in second.measurements}
    for m in measured if len(measured) >= 3 else ():
        if predicted := scores.get(str(m.candidate)):
            seconds = m.outcome.nanoseconds / 1e9
            assert predicted == pytest.approx(seconds, rel=0.5), "learned by then"


def test_a_schedule_that_fails_is_reported_as_a_failure(script, tmp_path, client_tests):
    with client_tests.run_server(f"--measurements={tmp_path / 'measurements'}") as address:
        tuned(script, "without_margin", tmp_path / "out", address)
        with Client(address) as client:
            (kept,) = client.list_measurements("a board").graphs
    assert set(kept.failures) == {"crash"}


def test_the_example_is_a_pipeline():
    pipeline = PipelineFunction(str(EXAMPLE), "unsharp")()
    assert pipeline.extents == (1536, 1024, 3) and len(pipeline.arguments) == 1
    assert pipeline.input_values()[0].width() == 1536


def test_options_of_other_searches_are_refused(capsys):
    for command in (["halide", "a.py:f", "--strategy=random"], ["xla", "a.py:f", "--draws=5"]):
        with pytest.raises(SystemExit):
            main(command)
        assert f"unrecognized arguments: {command[2]}" in capsys.readouterr().err
