import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("jax", reason="jax is not installed")

from programs import convnet, hurry, product, rows, short, smoothing
from programs import tune_layouts as tune
from servers import run_server

from hlorank import ArgumentError, Client
from hlorank_tune import JournalError, replay
from hlorank_tune.journal import RESULTS_FILE
from hlorank_tune.measure.schema import HloModuleProto
from hlorank_tune.run import read_run
from hlorank_tune.xla import FusionCompiler, LayoutCompiler
from hlorank_tune.xla.layouts import LayoutProblem


@pytest.fixture(autouse=True)
def _hurry(monkeypatch):
    hurry(monkeypatch)


def candidates(run):
    return [m.candidate for m in run.measurements]


def assert_ended(run, folder, measurements):
    """A search that kept its budget, began with the default, tried nothing twice and ended."""
    distinct = {json.dumps(candidate, sort_keys=True) for candidate in candidates(run)}
    assert len(run.measurements) == len(distinct) == measurements
    assert run.measurements[0].number == 0 and run.measurements[0].score is None
    assert run.noise >= 0
    if sum(np.isfinite(m.outcome.ratio) for m in run.measurements) > 1:
        assert len(run.parts) == 3 and run.confirmed.keys() >= {0, run.best}
    assert read_run(folder)[1] == run


def test_layouts_are_searched_with_the_model(server, tmp_path):
    run = tune(convnet(), server, tmp_path, short())
    assert_ended(run, tmp_path, 6)
    assert candidates(run)[0] == {}
    assert run.with_model and run.errors == []
    assert run.predictions == 3 * 128, "before each two of the five that are not the default"
    assert all(m.score is not None for m in run.measurements[1:])


def test_a_search_begins_with_what_an_earlier_one_found(tmp_path):
    with run_server(f"--measurements={tmp_path / 'measurements'}") as address:
        first = tune(convnet(), address, tmp_path / "first", short(), target="a board")
        with Client(address) as client:
            (kept,) = client.list_measurements("a board").graphs
        second = tune(convnet(), address, tmp_path / "second", short(seed=1), target="a board")
    assert first.kept == "6 measurements are kept for later searches on 'a board'"
    working = [m for m in first.measurements if m.outcome.nanoseconds]
    by_time = sorted(working, key=lambda m: m.outcome.nanoseconds)
    times = [m.outcome.nanoseconds / 1e9 for m in by_time]
    assert sorted(kept.seconds[kept.seconds > 0]) == pytest.approx(times)
    assert by_time[0].candidate in candidates(second)[:2], "it is measured right after the program"
    assert {m.unit for m in second.measurements[-3:]} == {"seconds"}, "from the first round on"


def test_a_small_space_ends_a_search(tmp_path):
    run = tune(product(), None, tmp_path, short(measurements=200))
    assert_ended(run, tmp_path, 27)


def test_results_that_take_the_memory_of_arguments_harm_nothing(tmp_path):
    donating = HloModuleProto.FromString(product().module.SerializeToString())
    # HloInputOutputAliasProto: the result {} must take the memory of parameter 0, {}.
    donating.input_output_alias = bytes([0x0A, 0x04, 0x10, 0x00, 0x20, 0x02])
    run = tune(replace(product(), module=donating), None, tmp_path, short(measurements=2))
    assert_ended(run, tmp_path, 2)
    assert donating.input_output_alias, "the module is as it was"


def test_a_number_of_threads_is_checked_when_a_compiler_is_made():
    for threads in (-1, True, 1.0):
        with pytest.raises(ArgumentError, match="threads is"):
            LayoutCompiler(convnet(), threads)


def test_a_winner_is_measured_again_and_run(tmp_path):
    run = tune(convnet(), None, tmp_path, short())
    outcomes = replay(LayoutCompiler(convnet()), tmp_path)
    assert [(name, outcome.status) for name, outcome in outcomes.items()] == [
        ("program", "measured"),
        ("winner", "measured"),
    ]
    (result,) = LayoutCompiler(convnet()).executable(tmp_path)()
    assert np.asarray(result).shape == (2, 16)
    assert run.best is not None


def test_a_winner_of_another_program_or_of_none_is_refused(tmp_path):
    tune(convnet(), None, tmp_path, short(measurements=1))
    with pytest.raises(JournalError, match="of another program, 'convnet'"):
        replay(LayoutCompiler(product()), tmp_path)
    whole = rows(tmp_path)
    (tmp_path / RESULTS_FILE).write_text("".join(json.dumps(row) + "\n" for row in whole[:-1]))
    with pytest.raises(JournalError, match="is not completed"):
        LayoutCompiler(convnet()).executable(tmp_path)


@pytest.mark.parametrize("program", [convnet, product])
def test_a_candidate_is_read_as_it_was_written(program):
    problem = LayoutProblem(program())
    for candidate in problem.space.random(np.random.default_rng(0), 50):
        written = json.loads(json.dumps(problem.written(candidate)))
        assert (problem.read(written) == candidate).all()


IDENTITY = """
import sys
sys.path.insert(0, {here!r})
from programs import convnet, smoothing
from hlorank_tune.xla import FusionCompiler, LayoutCompiler
print(LayoutCompiler(convnet()).identity(), FusionCompiler(smoothing()).identity())
"""


def test_a_program_is_the_same_one_in_every_process():
    script = IDENTITY.format(here=os.path.dirname(__file__))
    told = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, check=True)
    own = LayoutCompiler(convnet()).identity(), FusionCompiler(smoothing()).identity()
    assert told.stdout.decode().strip() == " ".join(map(str, own))


def test_a_candidate_that_cannot_be_lowered_is_a_row(tmp_path, monkeypatch):
    def written(self, candidate):
        if candidate.any():
            raise ValueError("it has no\nlayouts")
        return self.reference_program

    monkeypatch.setattr(LayoutProblem, "program", written)
    run = tune(convnet(), None, tmp_path, short(measurements=3))
    assert_ended(run, tmp_path, 3)
    assert [m.outcome.status for m in run.measurements[1:]] == ["failed"] * 2
    assert run.measurements[1].outcome.message == "is not lowered: it has no"
