"""Searches for schedules of a pipeline whose draws and run times are made up."""

from dataclasses import replace

import numpy as np
import pytest

from hlorank.errors import HlorankError
from hlorank.halide.drawing import GREEDY, draws_after_greedy
from hlorank.halide.messages import Compiled, Failed, Searched
from hlorank.halide.schedule import Draw, Schedule
from hlorank.halide.script import PipelineFunction
from hlorank.measure.rounds import Timing
from hlorank.tune.halide import SCHEDULE_FILE, HalideCompiler
from hlorank.tune.halide.compiler import draw_text
from hlorank.tune.journal import Journal
from hlorank.tune.predictor import Chosen
from hlorank.tune.progress import begun
from hlorank.tune.search import Search
from hlorank.tune.settings import Settings

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


class Knowing:
    """Predicts the run times of schedules; what it learns is kept."""

    def __init__(self, known=MICROSECONDS):
        self.known, self.learned = known, []

    def __call__(self, subject):
        return self

    def check(self):
        self.checked = True

    def scores(self, draws, seconds):
        return np.array([float(self.known[draw.number]) for draw in draws])

    def choose(self, draws, count, seconds):
        ordered = sorted(draws, key=lambda draw: self.known[draw.number])[:count]
        return Chosen(ordered, self.scores(ordered, seconds).tolist(), None)

    def earlier(self):
        return ()

    def learn(self, draws, outcomes):
        self.learned += draws

    def finish(self):
        pass


@pytest.fixture
def searched(tmp_path):
    """Searches with the model's first ``count`` measured; by default it knows the run times."""

    def search(fake, count=2, draws=8, guide=None, folder=None):
        compiler = HalideCompiler("blur", PipelineFunction("a.py", "blur"))
        compiler._schedules = fake
        settings = Settings("drawn", measurements=count, predictions=draws, top_k=count)
        out = folder or tmp_path / "out"
        journal = Journal(out, {"settings": {}})
        settings = replace(settings, with_model=guide is not False)
        phases = []
        guide = (guide or Knowing()) if guide is not False else None
        listener = lambda run: phases.append(run.phase)  # noqa: E731
        run = Search(compiler, guide, settings, begun(compiler, settings, journal, listener)).run()
        journal.close()
        compiler.write(run, out)
        return run, compiler, phases

    return search


def drawn(run):
    """The numbers of the draws that were measured, with their times in microseconds."""
    return {
        m.candidate.get("number", 0): m.outcome.nanoseconds and m.outcome.nanoseconds // 1000
        for m in run.measurements
    }


def test_the_greedy_schedule_and_the_first_of_the_ranking_are_measured(searched):
    fake = FakeCompiler()
    run, _, phases = searched(fake)
    assert fake.compiled == [0, 3, 2]
    assert drawn(run) == {0: 500, 3: 300, 2: 400}
    assert run.best == 1 and run.final_ratio == pytest.approx(3 / 5)
    assert "1.67 times as fast as the greedy schedule after 3 measurements" in str(run)
    kinds = list(dict.fromkeys(phase.partition(":")[0] for phase in phases if phase))
    assert kinds == ["drawing", "predicting", "compiling", "measuring"]


def test_the_greedy_schedule_is_compiled_once_if_it_is_among_the_first(searched):
    fake = FakeCompiler()
    searched(fake, count=4)
    assert fake.compiled == [0, 3, 2, 4, 1]


def test_a_schedule_that_fails_is_a_row_and_the_next_one_takes_its_place(searched):
    fake = FakeCompiler(compiles={3: "the compiler or the schedule crashed with SIGSEGV"})
    run, _, _ = searched(fake)
    assert fake.compiled == [0, 2, 4]
    (failed,) = (m for m in run.measurements if m.outcome.nanoseconds is None)
    assert failed.candidate["number"] == 3
    assert failed.outcome.message == "the compiler or the schedule crashed with SIGSEGV"
    assert run.winner.candidate["number"] == 2


def test_a_draw_that_fails_is_told_with_its_reason(searched):
    run, _, _ = searched(FakeCompiler(searches={5: "the search timed out after 30 s"}))
    assert run.left_alone == {"draw 5: noise 1.5": "the search timed out after 30 s"}


def test_draws_that_repeat_an_earlier_one_are_only_counted(searched):
    run, _, _ = searched(FakeCompiler(repeats={6: 1, 7: 0}), count=8)
    assert run.left_alone == {"2 draws": "repeat an earlier schedule"}
    assert sorted(drawn(run)) == [0, 1, 2, 3, 4, 5]


def test_a_schedule_may_take_ten_times_as_long_as_the_greedy_one(searched, monkeypatch):
    monkeypatch.setitem(MICROSECONDS, 0, 50_000)
    fake = FakeCompiler()
    searched(fake)
    assert fake.slowest == {0: 60.0, 3: 0.5, 2: 0.5}


def test_without_a_greedy_schedule_the_others_are_measured(searched, tmp_path):
    fake = FakeCompiler(compiles={0: "Input buffer i is accessed at -12"})
    run, _, _ = searched(fake)
    assert fake.compiled == [3, 2] and run.winner.candidate["number"] == 3
    assert fake.slowest[3] == 60.0
    assert "takes 300 µs after 3 measurements; the greedy schedule does not work" in str(run)
    run, compiler, _ = searched(FakeCompiler(searches={0: "no schedule"}), folder=tmp_path / "b")
    assert run.measurements[0].outcome.status == "draw failed"
    assert run.winner.candidate["number"] == 3 and compiler.whole.graph is not None


def test_no_schedule_may_work_at_all(searched, tmp_path):
    run, compiler, _ = searched(FakeCompiler(compiles=dict.fromkeys(MICROSECONDS, "refused")))
    assert "no candidate that works was measured" in str(run)
    assert compiler.use(run, tmp_path / "out") == ""
    assert [m.outcome.message for m in run.measurements] == ["refused"] * 8


def test_nothing_is_gained_within_the_noise(searched, monkeypatch):
    monkeypatch.setitem(MICROSECONDS, 3, 496)
    known = {number: number != 3 for number in MICROSECONDS}
    run, _, _ = searched(FakeCompiler(), count=1, guide=Knowing(known))
    assert run.noise == pytest.approx(0.01) and run.best == 0
    assert "nothing is faster than the greedy schedule" in str(run)


def test_without_a_model_schedules_are_measured_in_a_random_order(searched):
    run, _, _ = searched(FakeCompiler(), count=7, guide=False)
    assert len(run.measurements) == 8 and run.winner.candidate["number"] == 3
    assert list(drawn(run)) != sorted(drawn(run))


def test_the_fastest_schedule_is_written_with_how_to_use_it(searched, tmp_path):
    run, compiler, _ = searched(FakeCompiler(compiles={3: "refused"}))
    text = (tmp_path / "out" / SCHEDULE_FILE).read_text()
    assert text.startswith("// blur: 1.25 times as fast") and text.endswith("// 2")
    use = compiler.use(run, tmp_path / "out")
    assert "Draw(2, beam=4)" in use and SCHEDULE_FILE in use


def test_a_stopped_search_continues_and_measures_nothing_again(searched):
    first, _, _ = searched(FakeCompiler())
    fake = FakeCompiler()
    again, _, _ = searched(fake)
    assert again == first and fake.compiled == []


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


def test_another_pipeline_of_the_same_name_is_another_search(monkeypatch):
    monkeypatch.setattr("hlorank.tune.halide.compiler.version", lambda _: "21")
    one, same, other = (
        HalideCompiler("f", PipelineFunction(place, "f")).identity()
        for place in ("a.py", "a.py", "b.py")
    )
    assert one == same and one["identity"] != other["identity"]
    assert one["pipeline"] == "a.py:f"


def test_a_value_of_a_generator_has_a_name():
    parsed = PipelineFunction.parse("blur.py:Blur", ["factor=2", "name=a=b"])
    assert parsed.parameters == (("factor", "2"), ("name", "a=b"))
    assert str(parsed) == "blur.py:Blur factor=2 name=a=b"
    for parameter in ("factor", "=2"):
        with pytest.raises(HlorankError, match="is not a parameter, expected NAME=VALUE"):
            PipelineFunction.parse("blur.py:Blur", [parameter])
