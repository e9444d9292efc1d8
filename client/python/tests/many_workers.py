"""Searches lists of measured GPU kernels with many workers that sleep the times, and prints what
that gains over one. A list takes half a minute a seed; a test runs a small one.

usage: many_workers.py LIST.npz... [--workers 32] [--measurements 128] [--unit 3] [--seeds 3]
                       [--kill]

A measurement sleeps between half and one and a half units, as a compiler would take, and then up
to four units, in proportion to its time. ``--kill`` kills a third of the workers and the server in
the middle. Each search has a server of its own; the processes share the machine with it.
"""

import argparse
import json
import multiprocessing
import random
import sys
import tempfile
import time
from dataclasses import dataclass
from heapq import heapify, heapreplace
from itertools import chain
from pathlib import Path

import numpy as np
from servers import run_process

from hlorank import Client, Lease, Space
from hlorank.worker import Worker

NOISE = 0.02
TTL = 12
COUNTS = (32, 64, 96, 128)
TARGET = "listed"

# A process that has everything imported, without a connection, which the workers are copies of.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["many_workers"])


@dataclass(frozen=True)
class Listed:
    """The configurations of a measured kernel."""

    space: Space
    times: np.ndarray
    """Seconds of each; not finite for those that failed"""

    @classmethod
    def read(cls, path: str) -> "Listed":
        """Reads a file of arrays."""
        arrays = np.load(path, allow_pickle=True)
        names = [str(each) for each in arrays["names"]]
        configs = [dict(zip(names, row.tolist(), strict=True)) for row in arrays["params"]]
        space = Space.from_configs("listed", configs, instance=Path(path).stem)
        return cls(space, arrays["seconds"])

    def measured(self, place: int, draw: random.Random) -> float | str:
        """Returns what measuring a configuration gives."""
        found = self.times[place] * draw.lognormvariate(0, NOISE)
        return float(found) if np.isfinite(found) else "crash"

    def regret(self, places: list[int], count: int) -> float:
        """Returns by how much the fastest of the first ones is slower than the fastest of all."""
        tried = self.times[places[:count]]
        fastest = self.times[np.isfinite(self.times)].min()
        return float(tried[np.isfinite(tried)].min(initial=np.inf) / fastest - 1)


def work(address: str, path: str, seed: int, budget: int, unit: float, log: str, begin) -> None:
    """Runs one worker, which writes what it measures."""
    listed = Listed.read(path)
    typical = float(np.median(listed.times[np.isfinite(listed.times)]))
    draw = random.Random(time.time_ns())
    name = multiprocessing.current_process().name

    def measure(one):
        place = listed.space.number(one)
        share = listed.times[place] / typical
        slept = unit * (draw.uniform(0.5, 1.5) + (min(share, 4) if np.isfinite(share) else 0))
        time.sleep(slept)
        with open(log, "a") as lines:
            lines.write(json.dumps([name, place, slept]) + "\n")
        return listed.measured(place, draw)

    client = Client(address, timeout=20)
    worker = Worker(client, listed.space, TARGET, measure, budget=budget, ttl=TTL, seed=seed)
    begin.wait()
    worker.run()


@dataclass(frozen=True)
class Found:
    """What came of a search."""

    places: list[int]
    """The configurations that were measured, in order"""
    wall: float
    """Seconds until the last worker ended"""
    slept: list[float]
    """Seconds of each measurement"""
    lost: int
    """How many measurements that a worker lived to report the server does not have"""

    @property
    def twice(self) -> int:
        """How often a configuration was measured again."""
        return len(self.places) - len(set(self.places))

    def over_ideal(self, workers: int) -> tuple[float, float]:
        """Returns the wall time over the mean of the workers' sleep, and over the time that workers
        would take to whom each next measurement is given without delay."""
        ends = [0.0] * workers
        heapify(ends)
        for slept in self.slept:
            heapreplace(ends, ends[0] + slept)
        return self.wall * workers / sum(self.slept), self.wall / max(ends)


def search(
    path: str, workers: int, budget: int, unit: float, *, seed: int = 0, kill: bool = False
) -> Found:
    """Searches with many processes, a third of which is killed if that is asked for."""
    killed = []
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "measured")
        log.touch()
        flags = (f"--models={folder}", f"--measurements={folder}/store")

        def lines():
            return [json.loads(line) for line in log.read_text().splitlines()]

        with run_process(*flags) as server:
            begin = PROCESSES.Barrier(workers + 1)
            given = (server.address, path, seed, budget, unit, str(log), begin)
            processes = [PROCESSES.Process(target=work, args=given) for _ in range(workers)]
            for process in processes:
                process.start()
            begin.wait()
            start = time.monotonic()
            if kill:
                while len(lines()) < budget // 2:
                    time.sleep(0.02)
                killed = processes[: workers // 3]
                for process in killed:
                    process.kill()
                server.kill()
            else:
                for process in processes:
                    process.join()
                wall = time.monotonic() - start
        with run_process(f"--listen={server.address}", *flags):
            for process in processes:
                process.join()
            if kill:
                wall = time.monotonic() - start
            with Client(server.address) as client:
                (graph,) = client.list_measurements(TARGET).graphs
                kept = len(graph.seconds)
        assert all(process.exitcode == 0 for process in processes[len(killed) :])
        measured = lines()
    # What was measured last, a worker that was killed may not have reported.
    unreported = {name for name, _, _ in measured} & {process.name for process in killed}
    lost = max(0, len(measured) - len(unreported) - kept)
    return Found([place for _, place, _ in measured], wall, [each for *_, each in measured], lost)


def search_alone(path: str, budget: int, *, seed: int = 0) -> list[int]:
    """Returns what one worker measures, in order, which needs no sleep."""
    listed, draw, places = Listed.read(path), random.Random(seed), []
    with tempfile.TemporaryDirectory() as folder:
        flags = (f"--models={folder}", f"--measurements={folder}/store")
        with run_process(*flags) as server, Client(server.address) as client:
            one = client.search(listed.space, TARGET, seed=seed, lease=Lease("alone"))
            while len(places) < budget and (suggested := one.suggest()):
                place = listed.space.number(suggested[0])
                found = listed.measured(place, draw)
                told = "failure" if isinstance(found, str) else "seconds"
                one.report(place, **{told: found})
                places.append(place)
    return places


def mean(regrets: list[float]) -> float:
    """Returns the geometric mean of slowdowns, in percent."""
    return 100 * (float(np.exp(np.mean(np.log1p(regrets)))) - 1)


def main() -> None:
    """Prints a line for each list, and one for all of them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("lists", nargs="+")
    parser.add_argument("--workers", type=int, default=32)
    parser.add_argument("--measurements", type=int, default=128)
    parser.add_argument("--unit", type=float, default=3)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--kill", action="store_true")
    given = parser.parse_args()
    counts = [count for count in COUNTS if count <= given.measurements]
    print(f"{'regret in %: one at 96':36}", *(f"{count:>6}" for count in counts), end="")
    print("   wall   over mean sleep   over a schedule   twice   lost", flush=True)
    rows = []
    for path in given.lists:
        listed, alone, found = Listed.read(path), [], []
        for seed in range(given.seeds):
            alone.append(listed.regret(search_alone(path, 96, seed=seed), 96))
            one = search(
                path, given.workers, given.measurements, given.unit, seed=seed, kill=given.kill
            )
            found.append(one)
        over = [one.over_ideal(given.workers) for one in found]
        regrets = [[listed.regret(one.places, count) for one in found] for count in counts]
        row = [alone, *regrets, [one.wall for one in found], *zip(*over, strict=True)]
        row += [[one.twice for one in found], [one.lost for one in found]]
        rows.append(row)
        show(Path(path).stem, row)
    if len(rows) > 1:
        show("all", [[*chain(*columns)] for columns in zip(*rows, strict=True)])


def show(name: str, row: list[list[float]]) -> None:
    """Prints means of the seeds, and sums of what must be 0."""
    *regrets, wall, mean_sleep, schedule, twice, lost = row
    alone, *several = [mean(each) for each in regrets]
    print(f"{name:28} {alone:7.1f}", *(f"{each:6.1f}" for each in several), end="")
    print(f" {np.mean(wall):6.1f} {np.mean(mean_sleep):17.2f} {np.mean(schedule):17.2f}", end="")
    print(f" {sum(twice):7} {sum(lost):6}", flush=True)


if __name__ == "__main__":
    # Workers import this module by its name.
    import many_workers

    sys.exit(many_workers.main())
