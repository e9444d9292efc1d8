from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from hlorank_tune.measure import rounds as module
from hlorank_tune.measure.rounds import OtherLoad, Protocol, Timing, measure

MILLISECOND = 1_000_000


class Clock:
    """A clock that only what is measured moves on."""

    def __init__(self):
        self.now = 0

    def perf_counter_ns(self) -> int:
        return self.now

    def process_time_ns(self) -> int:
        """The processor is this process's for half of the time."""
        return self.now // 2

    def takes(self, *milliseconds: float):
        """An alternative that takes the times in turn, then the last one for ever."""
        left = list(milliseconds)

        def alternative():
            self.now += int((left.pop(0) if len(left) > 1 else left[0]) * MILLISECOND)

        return alternative


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


@pytest.fixture
def loads(monkeypatch):
    """Sets how busy others are, stretch after stretch; and not busy at all afterwards."""
    ahead: list[float] = []

    class Fake:
        def since_last(self) -> float:
            return ahead.pop(0) if ahead else 0.0

    monkeypatch.setattr(module, "OtherLoad", Fake)
    return ahead.extend


STRETCH = Protocol(warmups=0, rounds=4, seconds=0, stretch_seconds=2e-3, tries=3)
"""Two stretches of two rounds of a millisecond make a pass."""


def milliseconds(rounds: np.ndarray) -> list[float]:
    return (rounds[:, 0] / MILLISECOND).tolist()


@pytest.mark.parametrize(
    ("busy", "tries", "repeated", "loaded"),
    [
        ([], 3, 0, 0),
        ([STRETCH.other_load] * 4, 3, 0, 0),
        # Two passes, three tries, two rounds a stretch; then every round is kept.
        ([1.0] * 100, 3, 12, 8),
        ([1.0, 0.0, 0.0, 1.0], 0, 0, 4),
    ],
    ids=["quiet", "up to the limit", "always busy", "without tries"],
)
def test_a_pass_repeats_stretches_under_load_as_often_as_it_may(
    clock, loads, busy, tries, repeated, loaded
):
    loads(busy)
    timing = measure([clock.takes(1)], replace(STRETCH, tries=tries))
    assert milliseconds(timing.first) == milliseconds(timing.second) == [1, 1, 1, 1]
    assert (timing.repeated, timing.loaded) == (repeated, loaded)
    assert clock.now == (8 + repeated) * MILLISECOND


def test_a_stretch_under_load_is_measured_again(clock, loads):
    loads([0.0, 0.9])
    timing = measure([clock.takes(1, 1, 1.1, 1.1, 1.2, 1.2, 1)], STRETCH)
    assert milliseconds(timing.first) == [1, 1, 1.2, 1.2], "what ran under load is gone"
    assert milliseconds(timing.second) == [1, 1, 1, 1]
    assert (timing.repeated, timing.loaded) == (2, 0)


def test_a_stretch_is_at_least_one_round_however_short_it_may_be(clock, loads):
    loads([0.0, 1.0])
    protocol = Protocol(warmups=0, rounds=3, seconds=0, stretch_seconds=0, tries=3)
    timing = measure([clock.takes(1)], protocol)
    assert (len(timing.first), len(timing.second)) == (3, 3)
    assert timing.repeated == 1


@pytest.mark.parametrize(("each", "rounds"), [(5, 4), (1, 10), (0.5, 20), (0.1, 25)])
def test_fast_alternatives_get_more_rounds_but_no_more_than_the_most(clock, loads, each, rounds):
    protocol = Protocol(warmups=0, rounds=4, most_rounds=25, seconds=10e-3, stretch_seconds=2e-3)
    timing = measure([clock.takes(each)], protocol)
    assert (len(timing.first), len(timing.second)) == (rounds, rounds)


def test_every_round_runs_each_alternative_once_in_an_order_of_its_own(clock, loads):
    order = []

    def noted(index: int):
        run = clock.takes(index + 1)
        return lambda: (order.append(index), run())

    alternatives = [noted(index) for index in range(5)]
    timing = measure(alternatives, Protocol(warmups=0, rounds=6, seconds=0))
    rounds = [tuple(order[i : i + 5]) for i in range(0, len(order), 5)]
    assert all(sorted(one) == [0, 1, 2, 3, 4] for one in rounds)
    assert len(set(rounds)) > 6
    expected = np.arange(1, 6) * MILLISECOND
    assert (timing.first == expected).all() and (timing.second == expected).all()


def test_processor_time_is_measured_if_the_protocol_says_so(clock, loads):
    protocol = Protocol(warmups=0, rounds=2, seconds=0, clock="process")
    timing = measure([clock.takes(8)], protocol)
    assert milliseconds(timing.first) == milliseconds(timing.second) == [4, 4]


def test_warm_ups_are_not_timed(clock, loads):
    protocol = Protocol(warmups=2, rounds=2, seconds=0)
    timing = measure([clock.takes(50, 40, 1)], protocol)
    assert milliseconds(timing.first) == milliseconds(timing.second) == [1, 1]


def test_the_label_is_the_minimum_of_both_passes():
    first, second = np.array([[30.0, 7, 9], [20, 8, 9]]), np.array([[25.0, 6, 1], [40, 9, 0]])
    label = Timing(first, second).label()
    assert label.tolist() == [20, 6, 2], "and never below two nanoseconds"
    assert label.dtype == np.int64


def test_of_picks_alternatives_in_order_and_keeps_what_is_known_of_the_run():
    first, second = np.arange(8.0).reshape(2, 4), 10 + np.arange(8.0).reshape(2, 4)
    part = Timing(first, second, repeated=5, loaded=2).of([3, 0])
    assert part.first.tolist() == [[3, 0], [7, 4]]
    assert part.second.tolist() == [[13, 10], [17, 14]]
    assert (part.repeated, part.loaded) == (5, 2)


def test_passes_that_agree_have_tau_one_and_no_noise():
    first = np.array([[10.0, 20, 30], [11, 21, 31]])
    same, turned = Timing(first, first + 0), Timing(first, first[:, ::-1])
    assert (same.agreement(), same.noise()) == (pytest.approx(1), 0)
    assert turned.agreement() == pytest.approx(-1)
    assert Timing(first, first * 1.1).noise() == pytest.approx(0.1)


def test_the_load_of_others_is_a_finite_number_that_is_not_negative():
    load = OtherLoad()
    measured = [load.since_last() for _ in range(3)]
    assert all(np.isfinite(value) and value >= 0 for value in measured)


def test_the_load_is_zero_where_the_system_does_not_tell(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "_STATISTICS", tmp_path / "missing")
    load = OtherLoad()
    sum(range(1000))
    assert load.since_last() == 0


class System:
    """What the system would tell of processor time, in seconds."""

    def __init__(self, monkeypatch, statistics: Path):
        self._statistics = statistics
        self.elapsed = self.own = 0.0
        clock = SimpleNamespace(monotonic=lambda: self.elapsed, process_time=lambda: self.own)
        monkeypatch.setattr(module, "time", clock)
        monkeypatch.setattr(module, "_STATISTICS", statistics)
        monkeypatch.setattr(module.os, "sysconf", lambda _: 100)
        monkeypatch.setattr(module.os, "sched_getaffinity", lambda _: {1, 12})

    def tell(self, user=1.0, system=0.0, idle=0.0, waiting=0.0, stolen=0.0, guest=0.0) -> None:
        ticks = [int(100 * s) for s in (user, 0, system, idle, waiting, 0, 0, stolen, guest, 0)]
        counts = " ".join(map(str, ticks))
        # Another processor, and two that this process may run on.
        lines = ["cpu  9000 9000 9000", "cpu0 7000 0 7000", "cpu1 1 0 1", f"cpu12 {counts}"]
        self._statistics.write_text("\n".join(lines) + "\nctxt 99\n")


@pytest.mark.parametrize(
    ("told", "load"),
    [
        ({"user": 5}, 0),
        ({"user": 15}, 1),
        ({"user": 5, "system": 20}, 2),
        ({"user": 5, "stolen": 5}, 0.5),
        ({"user": 5, "idle": 900, "waiting": 80}, 0),
        ({"user": 15, "guest": 15}, 1),
        ({"user": 1}, 0),
    ],
    ids=["own", "other", "system", "stolen", "idle", "guest", "coarse"],
)
def test_only_what_others_use_is_load(monkeypatch, tmp_path, told, load):
    system = System(monkeypatch, tmp_path / "stat")
    system.tell(user=1)
    other = OtherLoad()
    system.elapsed, system.own = 10.0, 4.0
    system.tell(**told)
    assert other.since_last() == pytest.approx(load)


def test_after_its_seconds_a_measurement_ends_however_busy_the_machine_is(clock, loads):
    loads([0.9] * 100)
    long = Protocol(warmups=0, rounds=1000, stretch_seconds=2e-3, tries=100)
    timing = measure([clock.takes(1)], long, seconds=20e-3)
    assert len(timing.first) >= 1 and len(timing.second) >= 1
    assert clock.now <= 24 * MILLISECOND
    timing = measure([clock.takes(1)], long, seconds=0)
    assert (len(timing.first), len(timing.second)) == (1, 1)


def test_progress_is_reported_after_every_stretch(clock, loads):
    loads([0.0, 0.9])
    seen = []
    measure([clock.takes(1)], STRETCH, report=seen.append)
    assert [(now.rounds, now.load) for now in seen] == [
        (2, None),
        (2, 0.9),
        (4, None),
        (6, None),
        (8, None),
    ]
