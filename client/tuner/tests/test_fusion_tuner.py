"""Whole searches for fusions of small programs."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("jax", reason="jax is not installed")

from programs import hurry, run_command, short, smoothing
from programs import tune_fusions as tune
from servers import DATA
from test_tuner import Machine, Server, tuned

from hlorank import HlorankError
from hlorank_tune import ProgramError
from hlorank_tune.measure import execute
from hlorank_tune.measure.fusion import compilation as saved
from hlorank_tune.measure.fusion.compilation import (
    CHOSEN_FUSION,
    Compilation,
    OtherKernelsError,
)
from hlorank_tune.measure.results import largest_difference
from hlorank_tune.measure.schema import HloModuleProto
from hlorank_tune.xla import FusionCompiler
from hlorank_tune.xla import compiler as xla
from hlorank_tune.xla.fusions import FusionProblem

ABORTS = (DATA / "hlo/cnn_train.cpu_after_opt.hlo_module.pb").read_bytes()
"""Compiled again, a module after optimization breaks what XLA takes for granted."""


@pytest.fixture(autouse=True)
def _hurry(monkeypatch):
    hurry(monkeypatch)


@pytest.fixture(scope="module")
def problem():
    return FusionProblem(smoothing())


class Predicting(Server):
    """Predicts microseconds for candidates, and nothing for those that fuse the first slot."""

    def scores(self, candidates, seconds):
        scores = 1e-6 * (1 + super().scores(candidates, seconds))
        return np.where(np.asarray(candidates)[:, 1] != 0, np.inf, scores)


def measured_by(monkeypatch, machine):
    """Programs are measured by a machine whose times are made up."""
    monkeypatch.setattr(xla.XlaCompiler, "open", lambda *_: None)
    monkeypatch.setattr(xla.XlaCompiler, "measure", lambda _, *given: machine.measure(*given))


def test_fusions_are_searched_by_measuring_alone(tmp_path):
    run = tune(smoothing(), None, tmp_path, short(measurements=7))
    candidates = [measurement.candidate for measurement in run.measurements]
    assert candidates[:2] == [{}, run.default]
    assert len(candidates) == len(set(map(str, candidates))) == 7
    assert {m.outcome.status for m in run.measurements} == {"measured"}
    assert (run.task, run.with_model, run.best is None) == ("fusion", False, False)
    assert "the compiler's own fusions, written out, take" in str(run)
    again = tune(smoothing(), None, tmp_path, short(measurements=7))
    assert again == run, "a completed search is only read"


def test_the_best_predictions_are_measured(tmp_path):
    machine = Machine()
    run = tuned(tmp_path, machine, FusionCompiler(smoothing()), short(), Predicting(machine))
    scores = [m.score for m in run.measurements[2:]]
    assert len(scores) == 4 and all(np.isfinite(scores)), "infinite ones are not measured"
    assert [m.score for m in run.measurements[:2]] == [None, None]
    assert scores[:2] == sorted(scores[:2])


def test_what_has_no_prediction_at_all_ends_the_search(tmp_path):
    machine = Machine()
    server = Predicting(machine)
    server.scores = lambda candidates, seconds: np.full(len(candidates), np.inf)
    run = tuned(tmp_path, machine, FusionCompiler(smoothing()), short(), server)
    assert len(run.measurements) == 2 and run.best is not None


def test_the_winner_is_saved_with_the_passes_that_are_off_and_runs(tmp_path, monkeypatch):
    machine = Machine(times=lambda n: {0: 1000, 1: 1100, 2: 500}.get(n, 900))
    measured_by(monkeypatch, machine)
    run = tune(smoothing(), None, tmp_path, short())
    assert run.best == 2 and "2.00 times as fast as your program" in str(run)
    description = json.loads((tmp_path / saved.DESCRIPTION).read_text())
    assert description["disabled_passes"] == CHOSEN_FUSION
    assert description["fused_nodes"] == run.winner.candidate["fused_nodes"]
    expected = execute.Executable(smoothing().module, execute.on_device(smoothing().arguments))()
    loaded = saved.load(tmp_path, smoothing().arguments)
    for results in (loaded(), FusionCompiler(smoothing()).executable(tmp_path)()):
        assert largest_difference(expected, results) < 1e-5
    others = [np.ones_like(argument) for argument in smoothing().arguments]
    assert np.isfinite(np.asarray(loaded.run(execute.on_device(others))[0])).all()
    (tmp_path / saved.DESCRIPTION).write_text(json.dumps(description | {"jax": "0.0.1"}))
    with pytest.raises(HlorankError, match=r"xla:cpu of jax 0\.0\.1, but this is xla:cpu of jax"):
        saved.load(tmp_path)
    with pytest.raises(HlorankError, match="contains no program with chosen fusions"):
        saved.load(tmp_path / "nowhere")


def test_if_nothing_is_faster_nothing_is_saved(tmp_path, monkeypatch):
    measured_by(monkeypatch, Machine())
    run = tune(smoothing(), None, tmp_path, short())
    assert run.best == 0 and not (tmp_path / saved.MODULE).exists()


def test_a_candidate_that_fails_is_a_row_and_nothing_else_is_lost(tmp_path, monkeypatch):
    right, bad = FusionProblem.program, Compilation(ABORTS, "")

    def broken(self, candidate):
        number = self.space.fused(candidate)
        is_own = not candidate[0] or number == self.space.fused(self.default)
        return right(self, candidate) if is_own or len(number) % 2 else bad

    monkeypatch.setattr(FusionProblem, "program", broken)
    run = tune(smoothing(), None, tmp_path, short(measurements=8))
    failed = [m.outcome for m in run.measurements if m.outcome.status == "crashed"]
    assert len(run.measurements) == 8 and run.best is not None
    assert "Check failed" in failed[0].message
    assert {m.outcome.status for m in run.measurements} == {"crashed", "measured"}


def test_a_compiler_that_makes_other_kernels_is_noticed(problem, monkeypatch):
    compilation = problem.program(problem.default)
    executable = compilation.executable(execute.on_device(problem.arguments))
    assert "fusion" in {
        i.opcode for c in executable.optimized().computations for i in c.instructions
    }
    other = problem.program(problem.space.random(_random(), 1)[0])
    found = other.executable(()).optimized()
    monkeypatch.setattr(execute.Executable, "optimized", lambda self: found)
    with pytest.raises(OtherKernelsError, match="missing fusions"):
        compilation.executable(())


def test_candidates_are_written_read_and_sent_as_they_are(problem):
    drawn = problem.space.random(_random(), 20)
    for candidate in [problem.space.default, problem.default, *drawn]:
        written = json.loads(json.dumps(problem.written(candidate)))
        assert (problem.read(written) == candidate).all()
    configurations = problem.configurations(drawn)
    assert (configurations.values() == (drawn[:, 1:] != 0)).all()
    own = problem.configurations(np.array([problem.space.default, problem.default]))
    assert (own.values()[0] == own.values()[1]).all()
    assert problem.graph.whole().task == 3


def test_another_device_says_so(monkeypatch):
    monkeypatch.setattr(execute, "backend", lambda: "xla:gpu")
    with pytest.raises(HlorankError, match=r"xla:gpu.*JAX_PLATFORMS=cpu"):
        FusionProblem(smoothing())


def test_a_program_that_does_not_compile_says_why():
    module = HloModuleProto.FromString(smoothing().module.SerializeToString())
    for instruction in module.computations[-1].instructions:
        if instruction.opcode == "exponential":
            instruction.opcode, instruction.custom_call_target = "custom-call", "no_such_function"
    with pytest.raises(ProgramError, match="the program does not compile, or"):
        FusionProblem(replace(smoothing(), module=module))


def test_the_command_tunes_fusions(script, capsys):
    arguments = ["xla", f"{script}:program", "--fusion"]
    code, out, err = run_command(capsys, *arguments, "--without-model", "--measurements=4")
    assert (code, err) == (0, "")
    assert "tuned/smooth/report.md" in out
    page = Path("tuned/smooth/report.md").read_text()
    assert page.startswith("# smooth, without the model\n")
    code, out, _ = run_command(capsys, *arguments, "--replay=tuned/smooth")
    assert code == 0 and out.startswith("program")


def test_fusions_are_searched_with_a_server(server, tmp_path):
    run = tune(smoothing(), server, tmp_path, short())
    assert len(run.measurements) == 6 and run.errors == []
    assert run.predictions >= 2 * 128
    assert all(0 < m.score < 1 for m in run.measurements[2:]), "seconds"
    default, *winner = run.kernels
    assert default["candidate"] == run.default and len(winner) <= 1
    times = [kernel["seconds"] for kernel in default["kernels"]]
    assert times == sorted(times, reverse=True) and times[-1] > 0
    names = {kernel["name"].split("(")[1] for kernel in default["kernels"]}
    assert names <= {f"{opcode})" for opcode in ("add", "divide", "reduce", "multiply", "tanh")}
    assert tune(smoothing(), server, tmp_path, short()) == run


def test_programs_on_one_thread_are_measured_by_processor_time(tmp_path, monkeypatch):
    protocols = []

    def measured(worker, loader, programs, protocol, *limits, measure=xla.measure_programs):
        protocols.append(protocol)
        return measure(worker, loader, programs, protocol, *limits)

    monkeypatch.setattr(xla, "measure_programs", measured)
    tune(smoothing(), None, tmp_path, short(measurements=2))
    assert {(protocol.clock, protocol.tries) for protocol in protocols} == {("process", 0)}
    waiting = xla.Protocol(tries=60)
    compiler = FusionCompiler(smoothing())
    with compiler:
        compiler.open(tmp_path)
        compiler.measure(compiler.whole, [], waiting, 0.0, lambda _: None)
    assert (protocols[-1].clock, protocols[-1].tries) == ("process", 2)


def _random():
    return np.random.default_rng(0)
