"""Workers of one search: what they measure, survive and decide."""

import json
import multiprocessing
import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from statistics import fmean

import pytest
from gemm import SPACE, seconds
from servers import run_empty_server, said_once

from hlorank import ArgumentError, Client, Lease, Space
from hlorank.worker import Worker
from hlorank.worker.choice import choose


def test_workers_measure_nothing_twice_and_take_one_decision(store, client):
    measured = []

    def measure(one):
        measured.append(SPACE.number(one))
        return "crash" if one["tile"] == 1 else seconds(one)

    def work(name):
        worker = Worker(store, SPACE, "decided by all", measure, worker=name, ttl=5)
        return worker.run(), worker.measured, worker.conclude()

    with ThreadPoolExecutor() as threads:
        found = [*threads.map(work, ("a", "b"))]
    searched = measured[: len(SPACE)]
    assert sorted(searched) == [*range(len(SPACE))]
    assert sum(own for _, own, _ in found) == len(SPACE)
    assert {ended for ended, _, _ in found} <= {"exhausted", "decided"}
    best = {"tile": 8, "flag": "-O2"}
    assert [decided for _, _, decided in found] == [best, best]
    (decision,) = client.list_decisions("space", "decided by all").decisions
    assert json.loads(decision.value) == best and decision.evidence.runs == 5
    assert decision.evidence.measured_configs == len(SPACE) - 2


def test_a_decided_search_leases_nothing(store):
    Worker(store, SPACE, "over", seconds, budget=3).run()
    first = Worker(store, SPACE, "over", seconds)
    decided = first.conclude(runs=1)
    assert first.run() == "decided" and first.measured == 0
    assert Worker(store, SPACE, "over", seconds).conclude() == decided


def test_an_error_of_the_function_gives_its_configuration_back(store, client):
    def fail(one):
        raise RuntimeError("no such device")

    with pytest.raises(RuntimeError, match="no such device"):
        Worker(store, SPACE, "failing", fail).run()
    search = client.search(SPACE, "failing", lease=Lease("another"))
    assert len(search.suggest(len(SPACE))) == len(SPACE)


TERMINATED = """
import sys, time
from hlorank import Space, Worker
space = Space("gemm", {"tile": [1, 2]})
def measure(one):
    print("measuring", flush=True)
    time.sleep(60)
Worker(sys.argv[1], space, "terminated", measure, ttl=3600).run()
"""


def test_sigterm_gives_the_configuration_back_and_ends_the_process(store, client):
    command = [sys.executable, "-c", TERMINATED, store]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "measuring\n"
        process.terminate()
        assert process.wait(30) == -signal.SIGTERM
    search = client.search(Space("gemm", {"tile": [1, 2]}), "terminated", lease=Lease("b"))
    assert len(search.suggest(2)) == 2


def test_what_was_measured_while_the_server_was_away_is_reported_once_it_is_back(tmp_path):
    at_two, is_away = threading.Event(), threading.Event()
    measured = []

    def measure(one):
        measured.append(one)
        if len(measured) == 2:
            at_two.set()
            assert is_away.wait(60)
        return seconds(one)

    with run_empty_server(tmp_path) as server:
        client = Client(server.address, timeout=1)
        worker = Worker(client, SPACE, "kept", measure, ttl=5)
        with said_once("the worker waits") as caught:
            running = ThreadPoolExecutor().submit(worker.run)
            assert at_two.wait(60)
            server.kill()
            is_away.set()
            while not caught:
                time.sleep(0.05)
            with run_empty_server(tmp_path, server.address):
                assert running.result(120) == "exhausted"
                (kept,) = client.list_measurements("kept").graphs
        client.close()
    assert len(kept.seconds) == len(measured) == len(SPACE)


MANY = Space("many", {"tile": range(12), "flag": range(4)})


def one_of_many(address, log, begin):
    """Measures in a process of its own, and writes what it measures."""

    def measure(one):
        time.sleep(random.uniform(0.1, 0.3))
        with open(log, "a") as lines:
            lines.write(f"{multiprocessing.current_process().name} {MANY.number(one)}\n")
        return 0.1 + abs(one["tile"] - 8) / 10 + one["flag"] if one["tile"] else "crash"

    worker = Worker(Client(address, timeout=20), MANY, "killed", measure, budget=32, ttl=6)
    begin.wait()
    worker.run()


def test_nothing_is_lost_or_measured_twice_if_a_third_of_the_workers_and_the_server_are_killed(
    tmp_path,
):
    processes, log = multiprocessing.get_context("spawn"), tmp_path / "measured"
    log.touch()
    with run_empty_server(tmp_path) as server:
        begin = processes.Barrier(7)
        given = (server.address, str(log), begin)
        workers = [processes.Process(target=one_of_many, args=given) for _ in range(6)]
        for each in workers:
            each.start()
        begin.wait()
        while len(log.read_text().splitlines()) < 16:
            time.sleep(0.02)
        for each in workers[:2]:
            each.kill()
        server.kill()
    with run_empty_server(tmp_path, server.address):
        for each in workers:
            each.join()
        with Client(server.address) as client:
            (kept,) = client.list_measurements("killed").graphs
    assert all(each.exitcode == 0 for each in workers[2:])
    measured = [line.split() for line in log.read_text().splitlines()]
    places = {place for _, place in measured}
    # What was measured last, a worker that was killed may not have reported.
    unreported = {name for name, _ in measured} & {each.name for each in workers[:2]}
    assert len(measured) - len(unreported) <= len(kept.seconds)
    assert len(places) >= 32 and len(measured) - len(places) <= 2


def test_the_default_is_what_a_worker_has_if_nobody_decides():
    default = {"tile": 1, "flag": "-O1"}
    worker = Worker("127.0.0.1:1", SPACE, "away", seconds)
    begin = time.monotonic()
    with pytest.warns(UserWarning, match="the default is used"):
        assert worker.conclude(default, on_away="default") == default
    assert time.monotonic() - begin <= 2.5


def test_a_decision_is_made_anew_only_for_something_faster(store, client):
    times = {number: seconds(SPACE[number]) for number in range(len(SPACE))}

    def measure(one):
        return times[SPACE.number(one)]

    worker = Worker(store, SPACE, "again", measure)
    worker.run()
    first = worker.conclude()
    times[SPACE.number({"tile": 4, "flag": "-O2"})] = 0.0995
    assert worker.conclude(again=True) == first, "within the band the older one stays"
    times[SPACE.number({"tile": 4, "flag": "-O2"})] = 0.05
    assert worker.conclude(again=True) == {"tile": 4, "flag": "-O2"}
    (decision,) = client.list_decisions("space", "again").decisions
    assert decision.generation == 2


def test_a_decision_of_another_space_is_a_miss_with_a_warning(store):
    small = Space("gemm", {"tile": [1, 2], "flag": ["-O1", "-O2"]})
    worker = Worker(store, SPACE, "misfit", seconds)
    worker.run()
    worker.conclude()
    with pytest.warns(UserWarning, match="does not fit"):
        assert Worker(store, small, "misfit", seconds).conclude() is None


@pytest.mark.parametrize(
    ("times", "preferred", "chosen"),
    [
        ({"a": [1.0], "b": [1.005]}, [], "a"),
        ({"a": [1.0], "b": [1.005]}, ["b"], "b"),
        ({"a": [1.0], "b": [1.02]}, ["b"], "a"),
        ({"a": [1.0, 1.1, 0.9], "b": [1.1, 1.2, 1.0]}, ["b"], "b"),
        ({"a": [1.0], "b": [1.005], "c": [1.009]}, ["x", "c", "b"], "c"),
    ],
)
def test_within_the_tie_band_the_first_preferred_one_is_chosen(times, preferred, chosen):
    choice = choose(times, preferred)
    assert choice.candidate == chosen and choice.tie_band >= 0.01
    assert choice.seconds == fmean(times[chosen])


def test_a_space_is_written_as_the_command_line_reads_it(tmp_path):
    SPACE.write(tmp_path / "all.json")
    assert json.loads((tmp_path / "all.json").read_text()) == {
        "name": "gemm",
        "instance": "",
        "parameters": {"tile": [1, 2, 4, 8, 16, 32], "flag": ["-O1", "-O2"]},
    }
    listed = Space.from_configs("a", [{"b": 2, "a": "x"}, {"b": 1, "a": "y"}], instance="i")
    listed.write(str(tmp_path / "listed.json"))
    written = json.loads((tmp_path / "listed.json").read_text())
    assert written["parameters"] == {"b": [1, 2], "a": ["x", "y"]}
    assert written["configurations"] == [[2, "x"], [1, "y"]]
    with pytest.raises(ArgumentError, match="cannot be written"):
        SPACE.write(tmp_path)


def test_one_fast_machine_of_32_elects_no_wrong_winner(store, client):
    draw, speeds = random.Random(1), [0.8, *[1.0] * 31]
    space = Space("listed", {"tile": range(16), "unroll": range(16)})
    times = [0.01 * draw.lognormvariate(0, 0.2) for _ in space]

    def measured(number, machine):
        return times[number] * speeds[machine] * draw.lognormvariate(0, 0.02)

    searches = [
        client.search(space, "machines", lease=Lease(f"w{n}", 3600, machine=f"m{n}"))
        for n in range(len(speeds))
    ]
    found = []
    for machine in range(64):
        search = searches[machine % len(searches)]
        found.append(space.number(search.suggest()[0]))
        search.report(found[-1], measured(found[-1], machine % len(searches)))
    worker = Worker(store, space, "machines", lambda one: measured(space.number(one), 1))
    winner = space.number(worker.conclude())
    assert times[winner] <= 1.03 * min(times[number] for number in found)
