"""Searches tasks of TVM MetaSchedule with several cost models.

``python tests/baselines/tvm_search.py KNOWN OUT.jsonl SERVER [TRIALS] [SEEDS] [TASK...]`` searches
the tasks that ``tvm_tasks.py`` did not collect in the folder ``KNOWN``, one strategy after the
other for each task and seed, and goes on where it stopped; without ``SERVER`` it prints the table.

==============  ==========================================================================
``random``      random scores, as TVM's XGBoost gives them below 100 measurements
``xgb``         TVM's XGBoost, which knows the collected tasks and so predicts from the start
``hlorank``     ``hlorank.tvm.CostModel``, whose server has the collected tasks
``second``      the same for a second user, after what ``hlorank`` found
==============  ==========================================================================

Time on the clock is processor time of the search, its measurements and the server, which other work
on the machine disturbs less.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"  # measuring forks, and the children do not call

import numpy as np
import psutil
from tvm.s_tir import meta_schedule as ms
from tvm.s_tir.meta_schedule.runner import RunnerResult

import tvm_tasks as tasks

STRATEGIES = ("hlorank", "random", "xgb", "second")
BUDGETS = (8, 16, 32, 64, 128)
_ADDRESS = "127.0.0.1:7791"
_TARGET = "this machine"
_KNOWN_TARGET = "this machine, collected"
_POPULATION = 128


@contextmanager
def server(program: str, folder: str) -> Iterator[psutil.Process]:
    """A server without models that keeps measurements in a folder."""
    Path(folder, "models").mkdir(exist_ok=True)
    flags = ("--listen", _ADDRESS, "--metrics-listen", "off", "--models", f"{folder}/models")
    store = ("--measurements", f"{folder}/measurements")
    with subprocess.Popen([program, *flags, *store], stderr=subprocess.DEVNULL) as process:
        try:
            yield psutil.Process(process.pid)
        finally:
            process.terminate()


class Models:
    """The cost models, which know the collected tasks."""

    def __init__(self, known: Path, work: str):
        from hlorank import Client
        from hlorank.tvm import report_database, task_of

        self._client = Client(_ADDRESS)
        self._others = []
        self._xgb = f"{work}/xgb.tar"
        xgb = ms.cost_model.XGBModel(num_tuning_cores=1, num_warmup_samples=0)
        for name in tasks.KNOWN:
            database = tasks.known_database(known, name)
            report_database(self._client, _KNOWN_TARGET, database)
            records = database.get_all_tuning_records()
            self._others.append(task_of(_KNOWN_TARGET, records[0].workload.mod).target)
            context = ms.TuneContext(records[0].workload.mod, target=tasks.TARGET)
            candidates = [each.as_measure_candidate() for each in records]
            xgb.update(context, candidates, [RunnerResult(each.run_secs, None) for each in records])
        xgb.save(self._xgb)

    def of(self, strategy: str, seed: int):
        """The model of a strategy for one search."""
        from hlorank.tvm import CostModel

        np.random.seed(seed)
        if strategy == "random":
            return ms.cost_model.RandomModel(seed=seed)
        if strategy == "xgb":
            model = ms.cost_model.XGBModel(num_tuning_cores=1, num_warmup_samples=0)
            model.load(self._xgb)
            return model
        target = f"{_TARGET}, seed {seed}"
        draw = seed + 1000 * (strategy == "second")
        return CostModel(self._client, target, other_targets=self._others, seed=draw)


def search(name: str, strategy: str, seed: int, trials: int, models: Models, process) -> dict:
    """Searches once."""
    tasks.Measured.seconds.clear()
    tasks.Measured.clock.clear()
    cost_model = models.of(strategy, seed)
    started = _processor_seconds(process)
    tasks.Measured.after = lambda: _processor_seconds(process) - started
    begin = time.time()
    with tempfile.TemporaryDirectory() as work:
        tasks.search(
            name,
            cost_model,
            trials,
            1 + seed + 1000 * (strategy == "second"),
            work_dir=work,
            database="memory",
            strategy=ms.search_strategy.EvolutionarySearch(population_size=_POPULATION),
        )
    return {
        "task": name,
        "strategy": strategy,
        "seed": seed,
        "seconds": list(tasks.Measured.seconds),
        "clock": list(tasks.Measured.clock),
        "wall": time.time() - begin,
    }


def _processor_seconds(process: psutil.Process) -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    served = process.cpu_times()
    own = time.process_time()
    return own + children.ru_utime + children.ru_stime + served.user + served.system


def table(results: list[dict]) -> None:
    """Prints the best of each search, and geometric means over what all strategies searched."""
    best = {(each["task"], each["seed"], each["strategy"]): each for each in results}
    compared = ("random", "xgb", "hlorank")
    complete = sorted({key[:2] for key in best if all((*key[:2], s) in best for s in compared)})
    print(f"{len(complete)} searches of {len({task for task, _ in complete})} tasks")
    for task, seed in complete:
        for strategy in STRATEGIES:
            if each := best.get((task, seed, strategy)):
                _print_search(each)
    least = min((len(best[*key, "random"]["seconds"]) for key in complete), default=0)
    budgets = [budget for budget in BUDGETS if budget <= least]
    for strategy in compared:
        each = [(best[*key, strategy], best[*key, "random"]) for key in complete]
        ratios = [[_best(one, n) / _best(other, n) for n in budgets] for one, other in each]
        means = np.exp(np.log(ratios).mean(0)).round(3)
        clock = np.mean([[one["clock"][n - 1] for n in budgets] for one, _ in each], 0).round(1)
        print(f"{strategy:8} best against random {means}, processor seconds {clock}")
    again = [
        [_best(best[*key, "second"], n) / _best(best[*key, "hlorank"], 999) for n in (1, 8)]
        for key in complete
        if (*key, "second") in best
    ]
    if again:
        print(f"second user after 1, 8: {np.median(again, 0).round(3)} of what the first found")


def _best(result: dict, budget: int) -> float:
    return min(result["seconds"][:budget])


def _print_search(result: dict) -> None:
    budgets = [budget for budget in BUDGETS if budget <= len(result["seconds"])]
    times = " ".join(f"{1e3 * _best(result, budget):8.4f}" for budget in budgets)
    median = 1e3 * np.median(result["seconds"])
    print(
        f"{result['task']:26} seed {result['seed']} {result['strategy']:8} {times} ms, "
        f"median {median:8.3f} ms, {result['clock'][-1]:6.1f} s of processors"
    )


def main() -> None:
    """Searches what is missing, or prints the table."""
    known, out, *rest = sys.argv[1:]
    lines = Path(out).read_text().splitlines() if Path(out).exists() else []
    results = [json.loads(line) for line in lines]
    if not rest:
        table(results)
        return
    trials, seeds = (int(each) for each in (rest[1:3] or ("32", "1")))
    names = rest[3:] or list(tasks.UNSEEN)
    done = {(each["task"], each["seed"], each["strategy"]) for each in results}
    work = f"{out}.server"  # kept, for the second user
    Path(work).mkdir(exist_ok=True)
    with server(rest[0], work) as process:
        models = Models(Path(known), work)
        for seed in range(seeds):
            for name in names:
                for strategy in STRATEGIES:
                    if (name, seed, strategy) not in done:
                        count = trials if strategy != "second" else tasks.PER_ROUND
                        found = search(name, strategy, seed, count, models, process)
                        with Path(out).open("a") as file:
                            file.write(json.dumps(found) + "\n")
                        _print_search(found)


if __name__ == "__main__":
    main()
