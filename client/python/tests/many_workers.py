"""Searches a list of measured GPU kernels with many workers that sleep the times, and says what
that gains over one: run by hand, since it takes minutes.

usage: many_workers.py LIST.npz [--workers 32] [--measurements 128] [--unit 0.5] [--kill]

``--kill`` kills a third of the workers and the server, once each. Starts a server of its own.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from servers import run_process

from hlorank import Client, Space
from hlorank.worker import Worker

TTL = 6


def space_of(path: str) -> tuple[Space, np.ndarray]:
    """The space of a list, and the seconds of each configuration."""
    arrays = np.load(path, allow_pickle=True)
    names = [str(each) for each in arrays["names"]]
    configs = [dict(zip(names, row.tolist(), strict=True)) for row in arrays["params"]]
    return Space.from_configs("listed", configs, instance=Path(path).stem), arrays["seconds"]


def work(address: str, path: str, number: int, budget: int, unit: float, log: str) -> None:
    """Runs one worker, which writes what it measures."""
    space, times = space_of(path)
    typical = float(np.median(times[np.isfinite(times)]))
    draw = random.Random(time.time_ns())

    def measure(one):
        place = space.number(one)
        runs = np.isfinite(times[place])
        slept = unit * (draw.uniform(0.5, 1.5) + (min(times[place] / typical, 4) if runs else 0))
        time.sleep(slept)
        with open(log, "a") as lines:
            lines.write(json.dumps([place, slept]) + "\n")
        return float(times[place] * draw.lognormvariate(0, 0.02)) if runs else "crash"

    client = Client(address, timeout=20)
    Worker(client, space, "listed", measure, budget=budget, ttl=TTL, seed=1).run()


def main() -> None:
    """Measures, and prints a line of JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("list")
    parser.add_argument("--workers", type=int, default=32)
    parser.add_argument("--measurements", type=int, default=128)
    parser.add_argument("--unit", type=float, default=0.5)
    parser.add_argument("--kill", action="store_true")
    given = parser.parse_args()
    space, times = space_of(given.list)
    with tempfile.TemporaryDirectory() as folder:
        log = f"{folder}/measured"
        flags = (f"--models={folder}", f"--measurements={folder}/store")
        with run_process(*flags) as server:
            address = server.address

            def start(number):
                arguments = [address, given.list, number, given.measurements, given.unit, log]
                code = f"import many_workers; many_workers.work(*{arguments!r})"
                return subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parent)

            begin = time.monotonic()
            workers = [start(number) for number in range(given.workers)]
            if given.kill:
                time.sleep(10 * given.unit + 10)
                for number in range(given.workers // 3):
                    workers[number].kill()
                    workers[number] = start(number)
                server.process.kill()
                server.process.wait()
            else:
                for worker in workers:
                    worker.wait()
        if given.kill:
            with run_process(f"--listen={address}", *flags):
                for worker in workers:
                    worker.wait()
                kept = measured(address, space)
        else:
            with run_process(f"--listen={address}", *flags):
                kept = measured(address, space)
        wall = time.monotonic() - begin
        lines = [json.loads(line) for line in Path(log).read_text().splitlines()]
    places = [place for place, _ in lines]
    best, regret = np.inf, {}
    for count, place in enumerate(places, 1):
        best = min(best, times[place] if np.isfinite(times[place]) else np.inf)
        if count in (32, 64, 96, 128, 160):
            regret[count] = round(100 * (best / times[np.isfinite(times)].min() - 1), 1)
    ideal = sum(slept for _, slept in lines) / given.workers
    found = {"measured": len(places), "twice": len(places) - len(set(places)), "kept": kept}
    print(json.dumps(found | {"over ideal": round(wall / ideal, 2), "regret": regret}))


def measured(address: str, space: Space) -> int:
    """How many configurations the server has times of."""
    with Client(address) as client:
        return len(client.search(space, "listed").fastest())


if __name__ == "__main__":
    main()
