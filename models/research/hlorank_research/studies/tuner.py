"""Counts the measurements that the tuner saves in searches on held-out programs.

All searches of a program use the same protocol. Completed searches are not repeated.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from hlorank_tune import RESULTS_FILE, Run, Settings, read_run
from hlorank_tune.measure.lower import lower
from hlorank_tune.report import plot_curves
from hlorank_tune.xla import Program, tune
from tqdm import tqdm

from hlorank_training.data.prepare import Prepared
from hlorank_training.data.split import shuffled
from hlorank_training.measuring.zoo import Network, networks
from hlorank_training.reports.tables import markdown

MAX_NOISE = 0.05
"""Maximum difference between the final measurements of a search; a noisier search is repeated."""
WITHIN = 0.02
"""Difference up to which run times count as equal: the median of two passes over one program."""
WITH_MODEL = "with the model"


@dataclass(frozen=True)
class Search:
    """One kind of search."""

    name: str
    settings: Settings
    seeds: int | None = None
    """Maximum number of seeds; None for no limit."""

    def of(self, seeds: int) -> range:
        """Returns the seeds of this kind of search, out of ``seeds``."""
        return range(seeds if self.seeds is None else min(seeds, self.seeds))


SEARCHES = {
    "layout": (
        Search(WITH_MODEL, Settings("genetic", measurements=9)),
        Search("without", Settings("genetic", with_model=False, measurements=40)),
        Search("random", Settings("random", with_model=False, measurements=40), seeds=1),
    ),
}
"""By task."""


def study(task: str, prepared: Prepared, server: str, out: Path, subjects: int, seeds: int) -> str:
    """Runs the missing searches, plots into ``out``, and returns the table."""
    chosen = held_out_subjects(task, prepared, subjects)
    plan = [(n, s, i) for s in SEARCHES[task] for i in s.of(seeds) for n in chosen]
    for name, search, seed in tqdm(plan, desc="searches"):
        folder = _folder(out, name, search, seed)
        _remove_if_noisy(folder)
        if not _is_complete(folder):
            settings = replace(search.settings, seed=seed)
            address = server if settings.with_model else None
            tune(_program(name), address, folder, settings)
    return report(task, chosen, out, seeds)


def held_out_subjects(task: str, prepared: Prepared, count: int) -> list[str]:
    """Returns the first held-out graphs in the order of the SHA-256 of their names."""
    names = {prepared.sources[name].graph for name in prepared.split.test}
    return shuffled(sorted(names))[:count]


def _folder(out: Path, name: str, search: Search, seed: int) -> Path:
    return out / name / f"{search.name.replace(' ', '-')}-{seed}"


def _remove_if_noisy(folder: Path) -> None:
    """Removes the results of a search if its final measurements are too noisy."""
    results = folder / RESULTS_FILE
    if results.exists():
        _, run = read_run(folder)
        if run.noise is not None and run.noise > MAX_NOISE:
            results.unlink()


def _is_complete(folder: Path) -> bool:
    return (folder / RESULTS_FILE).exists() and read_run(folder)[1].best is not None


def _program(name: str) -> Program:
    network: Network = next(n for n in networks() if n.name == name)
    arguments = network.arguments()
    module = lower(network.name, network.function(), arguments)
    return Program(network.name, module, [np.asarray(argument) for argument in arguments])


@dataclass(frozen=True)
class Saving:
    """The searches without and with the model of one program and seed."""

    without: Run
    with_model: Run

    @property
    def measurements(self) -> int | None:
        """Measurements until the model's search is as good as the final result of the other.

        None if it never is. The final result is measured again, longer, since the best of forty
        short measurements is partly luck.
        """
        goal = self.without.final_ratio * (1 + WITHIN)
        reached = np.flatnonzero(self.with_model.curve() <= goal)
        return int(reached[0]) + 1 if len(reached) else None

    @property
    def factor(self) -> float:
        """Measurements without the model divided by those with it; 0 if it was never as good."""
        spent = len(self.without.measurements)
        return spent / self.measurements if self.measurements else 0.0


def report(task: str, names: Sequence[str], out: Path, seeds: int) -> str:
    """Returns the table of all programs, and plots their searches."""
    rows = []
    savings = []
    every = {search.name: [] for search in SEARCHES[task]}
    for name in names:
        runs = {s.name: _runs(out, name, s, seeds) for s in SEARCHES[task]}
        pairs = zip(runs["without"], runs[WITH_MODEL], strict=True)
        its_savings = [Saving(without, with_model) for without, with_model in pairs]
        savings += its_savings
        rows.append(_row(name, runs, its_savings))
        for search, found in runs.items():
            every[search] += found
    gained = [saving for saving in savings if saving.without.final_ratio < 1 - WITHIN]
    rows.append(["all", *map(_mean, every.values()), *_spent(savings)])
    rows.append([f"{len(gained)} of them that gain", *[""] * len(every), *_spent(gained)])
    plot_curves(_title(task, len(names), seeds), every, out / f"tuning-{task}.svg")
    head = ["", *(f"{search}, best" for search in every), "measured", "until as good", "factor"]
    return markdown(head, rows)


def _title(task: str, names: int, seeds: int) -> str:
    return f"{names} held-out programs of {task}s, {seeds} seeds each"


def _runs(out: Path, name: str, search: Search, seeds: int) -> list[Run]:
    return [read_run(_folder(out, name, search, seed))[1] for seed in search.of(seeds)]


def _row(name: str, runs: dict[str, list[Run]], savings: Sequence[Saving]) -> list[str]:
    until = [s.measurements for s in savings]
    return [
        name,
        *map(_median, runs.values()),
        str(len(savings[0].without.measurements)),
        ", ".join("never" if count is None else str(count) for count in until),
        f"{np.median([saving.factor for saving in savings]):.0f}",
    ]


def _median(runs: Sequence[Run]) -> str:
    return f"{np.median([run.final_ratio for run in runs]):.3f}"


def _mean(runs: Sequence[Run]) -> str:
    """Formats the geometric mean of ratios."""
    return f"{np.exp(np.mean(np.log([run.final_ratio for run in runs]))):.3f}"


def _spent(savings: Sequence[Saving]) -> list[str]:
    """Formats medians: measurements without the model, with it, and the factor between them."""
    measured = np.median([len(saving.without.measurements) for saving in savings])
    until = np.median([saving.measurements or np.inf for saving in savings])
    factor = np.median([saving.factor for saving in savings])
    return [f"{measured:.0f}", f"{until:.0f}" if np.isfinite(until) else "never", f"{factor:.0f}"]
