"""Searches tasks of TVM MetaSchedule with several cost models.

``python tests/baselines/tvm_search.py KNOWN OUT.jsonl SERVER [TRIALS] [SEED,…] [TASK...]`` searches
the tasks that ``tvm_tasks.py`` did not collect in the folder ``KNOWN``, one strategy after the
other for each task and seed, and goes on where it stopped; without ``SERVER`` it prints the table,
and plots it.

==============  ==========================================================================
``random``      random scores, as TVM's XGBoost gives them below 100 measurements
``default``     that XGBoost, which tells the last rounds of 128 trials apart
``xgb``         TVM's XGBoost, which knows the collected tasks and so predicts from the start
``hlorank``     ``hlorank.tuners.tvm.CostModel``, whose server has the collected tasks and the model
                ``tvm-llvm-cpu``
``new``         the same without the collected tasks: the model alone, at most 32 trials
``second``      the same for a second user, who begins with the records that ``add_known`` gives:
                the fastest one is measured first
==============  ==========================================================================

Time on the clock is processor time of the search, its measurements and the server, which other work
on the machine disturbs less.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"  # measuring forks, and the children do not call

import numpy as np
import psutil
from hlorank_training.measuring.tvm import candidates
from tvm.s_tir import meta_schedule as ms
from tvm.s_tir.meta_schedule.runner import RunnerResult

import tvm_tasks as tasks

STRATEGIES = ("random", "xgb", "hlorank", "new", "second", "default")
_COMPARED = STRATEGIES[:4]
BUDGETS = (8, 16, 32, 64, 128)
_ADDRESS = "127.0.0.1:7791"
_MOST = {"new": 32, "second": tasks.PER_ROUND}
"""The maximum trials of a strategy."""
_TARGET = "this machine"
_KNOWN_TARGET = "this machine, collected"
_POPULATION = 128
_MODEL = Path(__file__).parents[2] / "models/registry/tvm-llvm-cpu"


@contextmanager
def server(program: str, folder: str) -> Iterator[psutil.Process]:
    """A server with the model of candidates that keeps measurements in a folder."""
    shutil.copytree(_MODEL, Path(folder, "models", _MODEL.name), dirs_exist_ok=True)
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
        from hlorank.tuners.tvm import report_database, task_of

        self._client = Client(_ADDRESS)
        self._others = defaultdict(list)
        self._xgb = f"{work}/xgb.tar"
        xgb = ms.cost_model.XGBModel(num_tuning_cores=1, num_warmup_samples=0)
        for name in tasks.KNOWN:
            database = tasks.known_database(known, name)
            report_database(self._client, _KNOWN_TARGET, database)
            records = database.get_all_tuning_records()
            task = task_of(_KNOWN_TARGET, records[0].workload.mod)
            self._others[task.kind].append(task.target)
            context = ms.TuneContext(records[0].workload.mod, target=candidates.TARGET)
            known_ones = [each.as_measure_candidate() for each in records]
            xgb.update(context, known_ones, [RunnerResult(each.run_secs, None) for each in records])
        xgb.save(self._xgb)

    def of(self, strategy: str, seed: int, name: str):
        """The model of a strategy for one search of a task."""
        from hlorank.tuners.tvm import CostModel, task_of

        np.random.seed(seed)
        if strategy == "random":
            return ms.cost_model.RandomModel(seed=seed)
        if strategy == "default":
            return ms.cost_model.XGBModel(num_tuning_cores=1)
        if strategy == "xgb":
            model = ms.cost_model.XGBModel(num_tuning_cores=1, num_warmup_samples=0)
            model.load(self._xgb)
            return model
        if strategy == "new":
            return CostModel(self._client, f"new, seed {seed}", other_targets=[], seed=seed)
        draw = seed + 1000 * (strategy == "second")
        others = self._others[task_of("", tasks.module(name)).kind]
        return CostModel(self._client, _searched(seed), other_targets=others, seed=draw)

    def add_known(self, name: str, seed: int, database) -> None:
        """Adds what the first user of a task found to a database."""
        from hlorank.tuners.tvm import add_known

        add_known(self._client, _searched(seed), database, tasks.module(name), candidates.TARGET)


def _searched(seed: int) -> str:
    return f"{_TARGET}, seed {seed}"


def search(name: str, strategy: str, seed: int, trials: int, models: Models, process) -> dict:
    """Searches once."""
    cost_model = models.of(strategy, seed, name)
    started = _processor_seconds(process)
    candidates.Measured.after = lambda: _processor_seconds(process) - started
    begin = time.time()
    database = ms.database.MemoryDatabase()
    first = []
    if strategy == "second":
        models.add_known(name, seed, database)
        first = [_measured_again(database, name)]
    with tempfile.TemporaryDirectory() as work:
        candidates.search(
            tasks.module(name),
            cost_model,
            trials,
            1 + seed + 1000 * (strategy == "second"),
            num_trials_per_iter=tasks.PER_ROUND,
            work_dir=work,
            database=database,
            strategy=ms.search_strategy.EvolutionarySearch(population_size=_POPULATION),
        )
    return {
        "task": name,
        "strategy": strategy,
        "seed": seed,
        "trials": trials,
        "seconds": first + candidates.Measured.seconds,
        "clock": list(candidates.Measured.clock),
        "wall": time.time() - begin,
        "again": _measured_again(database, name) if strategy == "hlorank" else None,
    }


def _measured_again(database, name: str) -> float:
    """The time of the fastest candidate of a database, measured once more: a winner of noisy
    measurements was lucky as well."""
    (best,) = database.get_top_k(database.commit_workload(tasks.module(name)), 1)
    candidate = best.as_measure_candidate()
    seconds = candidates.measure(candidate.sch.mod, candidate.args_info)
    return float(np.median(seconds)) if seconds else np.inf


def _processor_seconds(process: psutil.Process) -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    served = process.cpu_times()
    own = time.process_time()
    return own + children.ru_utime + children.ru_stime + served.user + served.system


def table(results: list[dict]) -> None:
    """Prints the best of each search, and geometric means over what all strategies searched."""
    best = {(each["task"], each["seed"], each["strategy"]): each for each in results}
    for key in sorted(best):
        _print_search(best[key])
    print()
    heads = "  ".join(f"{strategy:>7}" for strategy in _COMPARED[1:])
    print("                        best time against random's")
    print(f"{'':24}{'after trials':28}{'in its time':28}processor s of each")
    print(f"trials  searches  tasks  {heads}   {heads}   ", *_COMPARED)
    for budget in BUDGETS:
        strategies = [each for each in _COMPARED if _MOST.get(each, budget) >= budget]
        lasting = {key[:2] for key in best if all(_lasts(best, key, s, budget) for s in strategies)}
        if not lasting:
            continue
        found = [[best[*key, s] for s in strategies] for key in sorted(lasting)]
        times = [[_best(each, budget) for each in row] for row in found]
        clocks = np.array([[each["clock"][:budget][-1] for each in row] for row in found])
        within = [
            [_best(each, np.searchsorted(each["clock"], clock, "right")) for each in row]
            for row, clock in zip(found, clocks[:, 0], strict=True)
        ]
        ratios = "   ".join(_cells(_ratios(each), "7.3f") for each in (times, within))
        count = len({task for task, _ in lasting})
        seconds = _cells(clocks.mean(0), "6.1f", len(_COMPARED))
        print(f"{budget:6}  {len(found):8}  {count:5}  {ratios}   {seconds}")
    _print_second(best)


def _cells(values: np.ndarray, form: str, count: int = len(_COMPARED) - 1) -> str:
    """Values of the first strategies; the others have none."""
    missing = ["-".rjust(int(form.split(".")[0]))] * (count - len(values))
    return "  ".join([f"{value:{form}}" for value in values] + missing)


def _print_second(best: dict[tuple, dict]) -> None:
    """Prints what the second user of a task has, over what the first found."""
    ratios = []
    for (task, seed, strategy), each in best.items():
        first = best.get((task, seed, "hlorank"))
        if strategy == "second" and first is not None:
            by = [_best(first, first["trials"]), first["again"]]
            ratios.append([_best(each, budget) / had for had in by for budget in (1, 8)])
    if ratios:
        measured = "its best time: {:.3f}, {:.3f}; measured once more: {:.3f}, {:.3f}"
        print("second user, after 1 and 8 trials, over what the first found, by")
        print(measured.format(*np.median(ratios, 0)))


def plot(results: list[dict], path: str) -> None:
    """Draws the best time so far over what the searches of a task and seed found, as means.

    Searches with fewer trials than the longest ones are left out.
    """
    from matplotlib.figure import Figure

    searches = defaultdict(dict)
    for each in results:
        searches[each["task"], each["seed"]][each["strategy"]] = each
    complete = [each for each in searches.values() if set(_COMPARED) <= set(each)]
    trials = max(each["random"]["trials"] for each in complete)
    complete = [each for each in complete if each["random"]["trials"] == trials]
    clocks = np.linspace(0, 1.5, 150)
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    by_trials, by_clock = figure.subplots(1, 2, sharey=True)
    for strategy in _COMPARED:
        over_trials, over_clock = [], []
        for found in complete:
            reached = min(min(each["seconds"]) for each in found.values())
            best = np.minimum.accumulate(found[strategy]["seconds"]) / reached
            over_trials.append(np.pad(best, (0, trials - len(best)), "edge"))
            clock = np.array(found[strategy]["clock"]) / found["random"]["clock"][-1]
            after = np.searchsorted(clock, clocks, "right")
            over_clock.append(np.r_[np.inf, best][after])
        mean = np.exp(np.log(over_trials).mean(0))[: _MOST.get(strategy, trials)]
        by_trials.step(np.arange(1, len(mean) + 1), mean, where="post", label=strategy)
        by_clock.step(clocks, np.exp(np.log(over_clock).mean(0)), where="post")
    by_trials.set(
        xlabel="measured candidates", ylabel="best time so far / best of all", ylim=(1, 3)
    )
    by_clock.set(xlabel="processor time / that of random scores")
    by_trials.legend(frameon=False)
    figure.savefig(path, metadata={"Date": None})


def _lasts(best: dict, key: tuple, strategy: str, budget: int) -> bool:
    """Whether a search was allowed so many trials; it ends earlier without new candidates."""
    found = best.get((*key[:2], strategy))
    return found is not None and found["trials"] >= budget


def _ratios(times: list[list[float]]) -> np.ndarray:
    """Geometric means over searches in which all found something, against the first strategy."""
    times = np.array(times)
    times = times[np.isfinite(times).all(1)]
    return np.exp(np.log(times[:, 1:] / times[:, :1]).mean(0))


def _best(result: dict, budget: int) -> float:
    return min(result["seconds"][:budget], default=np.inf)


def _print_search(result: dict) -> None:
    budgets = [budget for budget in BUDGETS if budget <= result["trials"]]
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
        plot(results, f"{out}.svg")
        return
    trials = int((rest[1:2] or ["32"])[0])
    seeds = [int(seed) for seed in (rest[2:3] or ["0"])[0].split(",")]
    names = rest[3:] or list(tasks.UNSEEN)
    done = {(each["task"], each["seed"], each["strategy"]) for each in results}
    work = f"{out}.server"  # kept, for the second user
    Path(work).mkdir(exist_ok=True)
    with server(rest[0], work) as process:
        models = Models(Path(known), work)
        for seed in seeds:
            for name in names:
                for strategy in STRATEGIES:
                    if (name, seed, strategy) not in done:
                        count = min(trials, _MOST.get(strategy, trials))
                        found = search(name, strategy, seed, count, models, process)
                        with Path(out).open("a") as file:
                            file.write(json.dumps(found) + "\n")
                        _print_search(found)


if __name__ == "__main__":
    main()
