"""Searches on a machine whose times and clock are made up."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("jax", reason="jax is not installed")

from programs import convnet, rows, short, smoothing

from hlorank import HlorankError
from hlorank.answers.ranking import distinct_first
from hlorank_tune.confirmation import winner
from hlorank_tune.journal import Journal
from hlorank_tune.run import read_run
from hlorank_tune.search import Search
from hlorank_tune.server import Chosen, ServerError
from hlorank_tune.subject import Outcome
from hlorank_tune.tuning import describe
from hlorank_tune.xla import FusionCompiler, LayoutCompiler

MINUTE = 60.0


class Machine:
    """Takes seconds for every candidate, and for waiting as often as the protocol allows."""

    def __init__(self, times=lambda n: 1000 + n, seconds=1.0, is_busy=False):
        self.now, self._times, self._seconds, self._is_busy = 0.0, times, seconds, is_busy
        self.batches, self._number = [], {}

    def clock(self):
        return self.now

    def measure(self, subject, candidates, protocol, seconds, report):
        report("measuring: 0 rounds done")
        self.batches.append(len(candidates))
        waits = protocol.tries * 2 * protocol.stretch_seconds if self._is_busy else 0.0
        self.now += len(candidates) * self._seconds + min(waits, seconds)
        keys = [subject.key(candidate) for candidate in candidates]
        numbers = [self._number.setdefault(key, len(self._number)) for key in keys]
        return [Outcome("measured", self._times(n), self._times(0), 0.01) for n in numbers]


class Server:
    """A server that answers some calls, each of which takes some seconds."""

    def __init__(self, machine, answers=10**9, seconds=0.01):
        self._machine, self._left, self._seconds = machine, answers, seconds
        self.learned = 0

    def check(self):
        if not self._left:
            raise ServerError("no server")

    def scores(self, candidates, seconds):
        self._machine.now += min(self._seconds, seconds)
        self._left -= 1
        if self._left < 0:
            raise HlorankError("gone")
        return np.array(candidates).sum(axis=1).astype("float32")

    def choose(self, candidates, count, seconds):
        scores = self.scores(candidates, seconds)
        first = distinct_first(scores)[:count]
        chosen = [candidates[place] for place in first]
        return Chosen(chosen, scores[first].tolist(), None)

    def earlier(self):
        return ()

    def finish(self):
        pass

    def learn(self, candidates, outcomes):
        self.learned += len(candidates)


def tuned(tmp_path, machine, compiler, settings, server=None, listener=lambda _: None):
    compiler.measure = machine.measure
    settings = replace(settings, with_model=server is not None)
    journal = Journal(tmp_path, describe(compiler, settings, None))
    guide = (lambda _: server) if server else None
    try:
        return Search(compiler, guide, settings, journal, listener, machine.clock).run()
    finally:
        journal.close()


def test_where_every_candidate_is_slower_the_program_wins(tmp_path):
    machine = Machine(times=lambda n: 1000 if not n else 23_000 - 1000 * n)
    run = tuned(tmp_path, machine, FusionCompiler(smoothing()), short(measurements=8))
    assert run.best == 0 and run.winner.candidate == {} and run.final_ratio == 1.0
    assert str(run).startswith("smooth: nothing is faster than your program")
    assert "written out, take 22.00 times the time of your program" in str(run)


def test_a_gain_is_that_over_the_program_and_not_over_the_default(tmp_path):
    machine = Machine(times=lambda n: {0: 1000, 1: 23_000, 2: 800}.get(n, 5000))
    run = tuned(tmp_path, machine, FusionCompiler(smoothing()), short(measurements=8))
    assert "1.25 times as fast as your program" in str(run) and run.final_ratio == 0.8
    assert run.default_outcome.ratio == 23


def test_the_program_wins_within_the_noise():
    own = Outcome("measured", 1000, 1000, 0.02)
    assert winner({0: own, 1: Outcome("measured", 985, 1000, 0.02)}) == (0, 0.02)
    assert winner({0: own, 1: Outcome("measured", 970, 1000, 0.02)}) == (1, 0.02)
    itself = Outcome("measured", 1050, 1000, 0.02)
    place, noise = winner({0: itself, 1: Outcome("measured", 970, 1000, 0.02)})
    assert place == 0 and noise == pytest.approx(0.05)


@pytest.mark.parametrize("is_busy", [False, True])
@pytest.mark.parametrize("server_seconds", [None, 0.01, 0.5])
@pytest.mark.parametrize("seconds", [0.5, 3.0])
@pytest.mark.parametrize("minutes", [1, 3])
def test_minutes_are_kept_with_a_confirmation(tmp_path, is_busy, server_seconds, seconds, minutes):
    machine = Machine(seconds=seconds, is_busy=is_busy)
    server = server_seconds and Server(machine, seconds=server_seconds)
    settings = short(measurements=300, seconds=minutes * MINUTE, predictions=640)
    run = tuned(tmp_path, machine, LayoutCompiler(convnet()), settings, server or None)
    assert 0.5 * minutes * MINUTE < machine.now <= 1.2 * minutes * MINUTE
    assert len(run.measurements) > 3 and len(run.parts) >= 1


def test_what_cannot_finish_is_not_started(tmp_path):
    machine = Machine(seconds=20)
    settings = short(measurements=100, seconds=50)
    run = tuned(tmp_path, machine, LayoutCompiler(convnet()), settings)
    assert machine.now <= 1.2 * 50 and len(run.measurements) <= 2


def test_a_stopped_confirmation_goes_on_with_its_next_part(tmp_path):
    class StoppedError(Exception):
        pass

    def stop(run):
        if len(run.parts) == 2:
            raise StoppedError

    settings = short(measurements=6)
    with pytest.raises(StoppedError):
        tuned(tmp_path, Machine(), LayoutCompiler(convnet()), settings, listener=stop)
    before = rows(tmp_path)
    machine = Machine()
    run = tuned(tmp_path, machine, LayoutCompiler(convnet()), settings)
    assert machine.batches == [4], "the last part alone: the program and the three fastest"
    assert len(run.parts) == 3 and rows(tmp_path)[: len(before)] == before
    machine = Machine()
    again = tuned(tmp_path, machine, LayoutCompiler(convnet()), settings)
    assert again == run == read_run(tmp_path)[1]
    assert machine.batches == [], "a complete run is only reported"


def test_without_a_server_nothing_is_measured(tmp_path):
    machine = Machine()
    with pytest.raises(ServerError):
        tuned(tmp_path, machine, LayoutCompiler(convnet()), short(), Server(machine, answers=0))
    assert machine.batches == []


def test_a_server_that_goes_away_is_told_at_the_end(tmp_path):
    machine = Machine()
    server = Server(machine, answers=3)
    run = tuned(tmp_path, machine, LayoutCompiler(convnet()), short(), server)
    assert len(run.measurements) == 6 and run.best is not None
    assert server.learned == 6, "the server may come back, and keep what was measured"
    assert "the server stopped answering after 128 predictions; the rest was" in str(run)


def test_every_phase_is_reported(tmp_path):
    phases = []

    def note(run):
        phases.append(run.phase)

    machine = Machine()
    tuned(tmp_path, machine, LayoutCompiler(convnet()), short(), Server(machine), note)
    kinds = list(dict.fromkeys(phase.partition(":")[0] for phase in phases))
    assert kinds[:2] == ["predicting", "measuring"]
    assert kinds[2:] == [f"confirming, part {part} of 3" for part in (1, 2, 3)] + [""]
