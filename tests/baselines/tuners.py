"""Runs other tuners on measured spaces of GPU kernels, and writes a table of their regret.

Usage: tuners.py FOLDER RESULTS TABLE [--seeds N] [--tuners NAME ...]

FOLDER has the lists (KERNEL.GPU.npz). Every search is appended to RESULTS, a file of JSON lines,
and is not run again. TABLE gets the means of all that RESULTS has.
"""

import argparse
import json
import os
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path

# Each library would start a thread for each core.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import hlorank_search
import kernel_tuner_search
import optuna_search
import trees_search
from measured_spaces import BUDGET, STEPS, Space, mean_regret, read, regrets


def random_search(space: Space, seed: int) -> list[int]:
    """Distinct random configurations."""
    count = len(space.seconds)
    return np.random.default_rng(seed).choice(count, BUDGET, replace=False).tolist()


TUNERS: dict[str, Callable[[Space, int], list[int]]] = {
    "random": random_search,
    "xgboost, bootstrap EI": trees_search.search,
    "Kernel Tuner: genetic_algorithm": partial(kernel_tuner_search.search, "genetic_algorithm"),
    "Kernel Tuner: simulated_annealing": partial(kernel_tuner_search.search, "simulated_annealing"),
    "Optuna: TPE": optuna_search.search,
    "Kernel Tuner: bayes_opt": partial(kernel_tuner_search.search, "bayes_opt"),
    "Kernel Tuner: hlorank": hlorank_search.search,
    "Kernel Tuner: hlorank, second user": hlorank_search.second_search,
}
_WITHOUT_SERVER = [tuner for tuner in TUNERS if "hlorank" not in tuner]
_TITLE = """\
Regret in % by number of measurements: the best time that was found over the best there is, minus 1.
Geometric means over GPUs and seeds, then over kernels. `tests/baselines/tuners.py` writes this."""
_FROM = STEPS.index(10)
"""Of each kernel, the table has the regret from this number of measurements on."""


def main() -> None:
    """Searches whatever was not searched yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("table", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--tuners", nargs="*", choices=TUNERS, default=_WITHOUT_SERVER)
    options = parser.parse_args()
    done = {_key(search): search for search in _searches(options.results)}
    spaces = read(options.folder)
    for tuner in options.tuners:
        for seed in range(options.seeds):
            for space in spaces:
                if (tuner, space.kernel, space.gpu, seed) not in done:
                    search = _search(tuner, space, seed)
                    done[_key(search)] = search
                    with options.results.open("a") as file:
                        print(json.dumps(search), file=file)
    options.table.write_text(table(list(done.values())))


def _searches(results: Path) -> list[dict]:
    lines = results.read_text().splitlines() if results.exists() else []
    return [json.loads(line) for line in lines]


def _key(search: dict) -> tuple[str, str, str, int]:
    return search["tuner"], search["kernel"], search["gpu"], search["seed"]


def _search(tuner: str, space: Space, seed: int) -> dict:
    begin = time.perf_counter()
    order = TUNERS[tuner](space, seed)
    return {
        "tuner": tuner,
        "kernel": space.kernel,
        "gpu": space.gpu,
        "seed": seed,
        "measured": len(order),
        "seconds": round(time.perf_counter() - begin, 2),
        "regrets": regrets(space, order),
    }


def table(searches: list[dict]) -> str:
    """The regret of every tuner in Markdown: the mean of kernels, and each kernel."""
    kernels = sorted({search["kernel"] for search in searches})
    means = {tuner: _means(searches, tuner) for tuner in TUNERS}
    means = {
        tuner: of_kernels for tuner, of_kernels in means.items() if len(of_kernels) == len(kernels)
    }
    lines = [_TITLE, ""]
    lines += _header(["tuner", "seeds", "measured", *map(str, STEPS)])
    for tuner, of_kernels in means.items():
        own = [search for search in searches if search["tuner"] == tuner]
        seeds = len({search["seed"] for search in own})
        measured = np.mean([search["measured"] for search in own])
        percents = map(_percent, mean_regret(of_kernels.values()))
        lines.append(_row([tuner, f"{seeds}", f"{measured:.0f}", *percents]))
    steps = ", ".join(map(str, STEPS[_FROM:]))
    lines += ["", *_header([f"after {steps}", *kernels])]
    for tuner, of_kernels in means.items():
        cells = [" ".join(map(_percent, of_kernels[kernel][_FROM:])) for kernel in kernels]
        lines.append(_row([tuner, *cells]))
    return "\n".join(lines) + "\n"


def _means(searches: list[dict], tuner: str) -> dict[str, np.ndarray]:
    """The regret of a tuner for each kernel that it searched."""
    by_kernel = defaultdict(list)
    for search in searches:
        if search["tuner"] == tuner:
            by_kernel[search["kernel"]].append(search["regrets"])
    return {kernel: mean_regret(regrets) for kernel, regrets in by_kernel.items()}


def _header(cells: list[str]) -> list[str]:
    return [_row(cells), f"|---|{'---:|' * (len(cells) - 1)}"]


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _percent(regret: float) -> str:
    return f"{100 * regret:.{0 if regret >= 0.1 else 1}f}"


if __name__ == "__main__":
    main()
