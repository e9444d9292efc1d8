import json

import numpy as np
import pytest

pytest.importorskip("scipy", reason="scipy is not installed")

from hlorank.errors import HlorankError
from hlorank.halide.drawing import GREEDY, draws_after_greedy
from hlorank.halide.messages import Compiled, Failed, Searched
from hlorank.halide.schedule import Draw, Schedule
from hlorank.halide.script import PipelineFunction
from hlorank.measure.rounds import Timing
from hlorank.tune.journal import RESULTS_FILE as JOURNAL
from hlorank.tune.schedules.choosing import compile_first, draw, measure, order
from hlorank.tune.schedules.report import (
    RESULTS_FILE,
    SCHEDULE_FILE,
    check_folder,
    draw_text,
    table,
    use,
    verdict,
    write,
)
from hlorank.tune.schedules.run import ScheduleRun, ScheduleSettings

MICROSECONDS = {0: 500, 1: 700, 2: 400, 3: 300, 4: 450, 5: 800, 6: 900, 7: 950}
"""Run times of schedules by the number of their draw."""


class FakeCompiler:
    """Draws one schedule for every number; some draws fail."""

    def __init__(self, searches=(), compiles=(), repeats=()):
        self.searches, self.compiles, self.repeats = dict(searches), dict(compiles), dict(repeats)
        self.compiled = []
        self.slowest = {}

    def search(self, draw, seconds):
        if draw.number in self.searches:
            return Failed(self.searches[draw.number])
        number = self.repeats.get(draw.number, draw.number)
        config = np.full((2, 39), number, np.float32)
        nodes, edges = np.zeros((2, 287), np.float32), np.array([[0, 1]])
        return Searched(Schedule(("a", "b"), edges, nodes, config, 1.0, f"// {number}"), 0.1)

    def compile(self, draw, slowest):
        self.slowest[draw.number] = slowest
        if draw.number in self.compiles:
            return Failed(self.compiles[draw.number])
        self.compiled.append(draw.number)
        return Compiled(0.2, MICROSECONDS[draw.number] / 1e6)

    def measure(self, protocol):
        times = np.array([[MICROSECONDS[number] * 1000 for number in self.compiled]])
        return Timing(times, times * 1.01)


def searched(compiler, count=2, draws=8, scores=None):
    """A run with the model's first ``count`` measured; by default it knows the run times."""
    run, steps = ScheduleRun("blur"), []
    listener = lambda *step: steps.append(step)  # noqa: E731
    draw(run, compiler, ScheduleSettings(draws=draws), listener, lambda _: None)
    order(run, scores or (lambda schedules: [MICROSECONDS[number_of(s)] for s in schedules]))
    compile_first(run, compiler, count, listener)
    measure(run, compiler, listener)
    return run, steps


def number_of(schedule):
    return int(schedule.config_features[0, 0])


def test_the_greedy_schedule_and_the_first_of_the_ranking_are_measured():
    compiler = FakeCompiler()
    run, steps = searched(compiler)
    assert compiler.compiled == [0, 3, 2]
    assert [one.draw.number for one in run.ranked] == [3, 2, 4, 0, 1, 5, 6, 7]
    assert [one.nanoseconds for one in run.ranked[:4]] == [300_000, 400_000, None, 500_000]
    assert run.gain == pytest.approx(5 / 3) and run.fastest.draw.number == 3
    assert steps[0] == ("drawing", 0, 8) and ("compiling", 3, 3) in steps
    assert steps[-1] == ("measuring", 1, 1)


def test_the_greedy_schedule_is_measured_once_if_it_is_among_the_first():
    compiler = FakeCompiler()
    searched(compiler, count=4)
    assert compiler.compiled == [0, 3, 2, 4]


def test_a_schedule_that_fails_is_a_row_and_the_next_one_takes_its_place():
    compiler = FakeCompiler(compiles={3: "the compiler or the schedule crashed with SIGSEGV"})
    run, _ = searched(compiler)
    assert compiler.compiled == [0, 2, 4]
    lines = table(run).splitlines()
    assert lines[1].split()[0] == "1"
    assert lines[1].endswith("beam 2: the compiler or the schedule crashed with SIGSEGV")
    assert run.fastest.draw.number == 2


def test_a_draw_that_fails_is_a_row_without_rank():
    run, _ = searched(FakeCompiler(searches={5: "the search timed out after 30 s"}))
    last = table(run).splitlines()[-1]
    assert last.strip() == "draw 5: noise 1.5: the search timed out after 30 s"
    assert len(run.ranked) == 7


def test_a_draw_that_repeats_an_earlier_one_is_only_counted():
    run, _ = searched(FakeCompiler(repeats={6: 1, 7: 0}))
    assert run.repeats == 2 and len(run.candidates) == 6


def test_a_schedule_may_take_ten_times_as_long_as_the_greedy_one(monkeypatch):
    monkeypatch.setitem(MICROSECONDS, 0, 50_000)
    compiler = FakeCompiler()
    searched(compiler)
    assert compiler.slowest == {0: 60.0, 3: 0.5, 2: 0.5}


def test_without_a_greedy_schedule_the_others_are_measured():
    compiler = FakeCompiler(compiles={0: "Input buffer i is accessed at -12"})
    run, _ = searched(compiler)
    assert compiler.compiled == [3, 2] and run.gain == float("inf")
    assert compiler.slowest[3] == 60.0
    assert verdict(run) == "blur: 300 µs; the greedy schedule does not work"
    run, _ = searched(FakeCompiler(searches={0: "no schedule"}))
    assert run.greedy is None and "of greedy" in table(run)


def test_no_schedule_may_work_at_all():
    run, _ = searched(FakeCompiler(compiles=dict.fromkeys(MICROSECONDS, "refused")))
    assert verdict(run) == "blur: no schedule works" and run.fastest is None
    assert use(run, None) == ""
    assert table(run).count("refused") == 8


def test_nothing_is_gained_within_the_noise(monkeypatch):
    monkeypatch.setitem(MICROSECONDS, 3, 496)
    run, _ = searched(FakeCompiler(), count=1, scores=lambda s: [number_of(x) != 3 for x in s])
    assert run.noise == pytest.approx(0.01) and not run.is_faster
    assert verdict(run).startswith("blur: nothing is faster than the greedy schedule (500 µs")


def test_the_columns_of_the_table_are_aligned():
    run, _ = searched(FakeCompiler())
    run.model, run.unit = "halide-adams2019@1", "seconds"
    for candidate in run.ranked:
        candidate.score *= 1e-6
    assert table(run).splitlines() == [
        "rank  predicted  measured  of greedy  schedule",
        "   1     300 µs    300 µs      0.600  draw 3: beam 2",
        "   2     400 µs    400 µs      0.800  draw 2: beam 4",
        "   4     500 µs    500 µs      1.000  draw 0: greedy",
    ]
    assert "1.67 times as fast as the greedy schedule (500 µs before, 300 µs after" in verdict(run)


def test_the_fastest_schedule_is_written_with_how_to_use_it(tmp_path):
    run, _ = searched(FakeCompiler(compiles={3: "refused"}))
    write(run, tmp_path)
    text = (tmp_path / SCHEDULE_FILE).read_text()
    assert text.startswith("// blur: 1.25 times as fast") and text.endswith("// 2")
    assert "Draw(2, beam=4)" in use(run, tmp_path) and SCHEDULE_FILE in use(run, tmp_path)
    content = json.loads((tmp_path / RESULTS_FILE).read_text())
    assert [row["problem"] for row in content["schedules"]] == ["refused", *[""] * 7]
    assert content["schedules"][1]["nanoseconds"] == 400_000


def test_a_draw_is_named_by_what_it_changes():
    assert draw_text(GREEDY) == "draw 0: greedy"
    assert draw_text(Draw(9, 0.4, 50, 4)) == "draw 9: beam 4, noise 0.4, 50 % of choices"


def test_wide_beams_are_drawn_only_if_the_search_is_fast():
    fast, slow = (list(draws_after_greedy(63, seconds, 30.0)) for seconds in (0.1, 1.6))
    assert [d.beam for d in fast[:4]] == [8, 4, 2, 1] and max(d.beam for d in fast[4:]) == 8
    assert {d.beam for d in slow} == {1}
    assert len({(d.number, d.noise, d.keep) for d in fast}) == len(fast) == 63


def test_a_function_is_named_by_its_file():
    assert PipelineFunction.parse("a/blur.py:blur") == PipelineFunction("a/blur.py", "blur")
    for text in ("blur.py", "blur.py:", ":blur", "blur.py:not a name"):
        with pytest.raises(HlorankError, match=r"expected FILE\.py:NAME"):
            PipelineFunction.parse(text)


def test_another_pipeline_of_the_same_name_does_not_overwrite_the_results(tmp_path):
    run, _ = searched(FakeCompiler())
    run.pipeline = "a.py:f"
    write(run, tmp_path)
    check_folder(tmp_path, "a.py:f")
    check_folder(tmp_path / "new", "b.py:f")
    with pytest.raises(HlorankError, match=r"folder with --out\n.a\.py:f, not b\.py:f"):
        check_folder(tmp_path, "b.py:f")
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / JOURNAL).write_text("{}\n")
    with pytest.raises(HlorankError, match=r"a search of another compiler, not b\.py:f"):
        check_folder(tmp_path / "new", "b.py:f")


def test_a_value_of_a_generator_has_a_name():
    parsed = PipelineFunction.parse("blur.py:Blur", ["factor=2", "name=a=b"])
    assert parsed.parameters == (("factor", "2"), ("name", "a=b"))
    assert str(parsed) == "blur.py:Blur factor=2 name=a=b"
    for parameter in ("factor", "=2"):
        with pytest.raises(HlorankError, match="is not a parameter, expected NAME=VALUE"):
            PipelineFunction.parse("blur.py:Blur", [parameter])
