"""Workers of one search in processes of their own, a third of which is killed with the server."""

import multiprocessing
import tempfile
import time
from pathlib import Path

from servers import run_process

from hlorank import Client, Space
from hlorank.worker import Worker

SPACE = Space("listed", {"tile": range(12), "flag": range(4)})
TTL = 12

# A process that has everything imported, without a connection, which the workers are copies of.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["many_workers"])


def work(address: str, budget: int, log: str, begin) -> None:
    """Runs one worker, which writes what it measures."""
    name = multiprocessing.current_process().name

    def measure(one):
        time.sleep(0.1)
        with open(log, "a") as lines:
            lines.write(f"{name} {SPACE.number(one)}\n")
        return 0.1 + abs(one["tile"] - 8) / 10 + one["flag"] if one["tile"] else "crash"

    worker = Worker(Client(address, timeout=20), SPACE, "listed", measure, budget=budget, ttl=TTL)
    begin.wait()
    worker.run()


def search(workers: int, budget: int) -> tuple[list[int], int]:
    """Returns the configurations that were measured, and how many measurements the server lacks
    that a worker lived to report."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "measured")
        log.touch()
        flags = (f"--models={folder}", f"--measurements={folder}/store")
        with run_process(*flags) as server:
            begin = PROCESSES.Barrier(workers + 1)
            given = (server.address, budget, str(log), begin)
            processes = [PROCESSES.Process(target=work, args=given) for _ in range(workers)]
            for process in processes:
                process.start()
            begin.wait()
            while len(log.read_text().splitlines()) < budget // 2:
                time.sleep(0.02)
            killed = processes[: workers // 3]
            for process in [*killed, server.process]:
                process.kill()
            server.process.wait()
        with run_process(f"--listen={server.address}", *flags):
            for process in processes:
                process.join()
            with Client(server.address) as client:
                (graph,) = client.list_measurements("listed").graphs
        assert all(process.exitcode == 0 for process in processes[len(killed) :])
        measured = [line.split() for line in log.read_text().splitlines()]
    # What was measured last, a worker that was killed may not have reported.
    unreported = {name for name, _ in measured} & {process.name for process in killed}
    lost = max(0, len(measured) - len(unreported) - len(graph.seconds))
    return [int(place) for _, place in measured], lost
