"""Errors by application, as Kaufman 2021 measures them (section 5, equation 2 and table 2).

The application of a kernel is its family, which in TpuGraphs' folders is its program.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean, mean, median

import numpy as np

from hlorank_training.data.dataset import Measured
from hlorank_training.data.prepare import Prepared
from hlorank_training.judging.evaluate import Score
from hlorank_training.metrics.ranking import kendall_tau, top_choices
from hlorank_training.reports.tables import markdown

_SHORT = 5_000
"""Nanoseconds below which a run time does not count in ``percentage_error``."""
Nanoseconds = Callable[[np.ndarray], np.ndarray]
"""Maps scores to predicted run times in nanoseconds."""


@dataclass(frozen=True)
class ApplicationErrors:
    """Errors on the kernels of one application."""

    kernels: int
    tile_size: float
    """Tile-Size APE in percent."""
    kendall_tau: float
    """Mean over the kernels."""
    percentage: float | None
    """MAPE in percent, over the run times of 5 us or more; None if scores are no run times."""


def application_errors(
    prepared: Prepared, score: Score, nanoseconds: Nanoseconds | None = None
) -> dict[str, ApplicationErrors]:
    """Returns the errors on the held-out kernels by application."""
    kernels: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
    for graph in prepared.graphs(prepared.split.test):
        of_application = kernels.setdefault(prepared.sources[graph.name].family, [])
        of_application.append(_scored(graph, score))
    return {name: _errors(found, nanoseconds) for name, found in sorted(kernels.items())}


def _scored(graph: Measured, score: Score) -> tuple[np.ndarray, np.ndarray]:
    return score(graph), graph.runtimes


def _errors(
    kernels: Sequence[tuple[np.ndarray, np.ndarray]], nanoseconds: Nanoseconds | None
) -> ApplicationErrors:
    taus = [kendall_tau(scores, runtimes) for scores, runtimes in kernels]
    percentage = None
    if nanoseconds is not None:
        scores, runtimes = (np.concatenate(parts) for parts in zip(*kernels, strict=True))
        percentage = percentage_error(nanoseconds(scores), runtimes)
    return ApplicationErrors(len(kernels), tile_size_error(kernels), mean(taus), percentage)


def tile_size_error(kernels: Iterable[tuple[np.ndarray, np.ndarray]]) -> float:
    """Returns the Tile-Size APE of scores and run times of every kernel, in percent.

    It is the time that the tiles of the lowest scores take longer than the best tiles, added up
    over the kernels, relative to the sum of the best run times (equation 2).
    """
    picked = 0
    best = 0
    for scores, runtimes in kernels:
        picked += int(runtimes[top_choices(scores, 1)[0]])
        best += int(runtimes.min())
    return 100 * (picked - best) / best


def table_mean(errors: Iterable[float]) -> float:
    """Returns the geometric mean, as in table 2, of the errors that are not 0."""
    return geometric_mean([error for error in errors if error > 0] or [1e-9])


def applications_table(errors: dict[str, ApplicationErrors]) -> str:
    """Returns a Markdown table with a row for each application, their median and their mean."""
    head = ["application", "kernels", "Tile-Size APE", "tau", "MAPE"]
    every = list(errors.items())
    every += [
        ("median", _total(errors, median, median)),
        ("mean", _total(errors, mean, table_mean)),
    ]
    rows = [[name, str(one.kernels), *_cells(one)] for name, one in every]
    absolute = any(row[-1] for row in rows)
    return markdown(head, rows) if absolute else markdown(head[:-1], [row[:-1] for row in rows])


def _total(errors: Mapping[str, ApplicationErrors], of_taus, of_errors) -> ApplicationErrors:
    every = errors.values()
    percentages = [one.percentage for one in every if one.percentage is not None]
    return ApplicationErrors(
        sum(one.kernels for one in every),
        of_errors(one.tile_size for one in every),
        of_taus(one.kendall_tau for one in every),
        of_errors(percentages) if percentages else None,
    )


def _cells(one: ApplicationErrors) -> list[str]:
    percentage = "" if one.percentage is None else f"{one.percentage:.1f}%"
    return [f"{one.tile_size:.1f}%", f"{one.kendall_tau:.2f}", percentage]


def percentage_error(predicted: np.ndarray, runtimes: np.ndarray) -> float | None:
    """Returns the mean absolute error in percent of predicted run times in nanoseconds.

    Only measured run times of 5 us or more count (Kaufman 2021, section 5.2); None without any.
    """
    long = runtimes >= _SHORT
    if not long.any():
        return None
    return float(100 * np.mean(np.abs(predicted[long] - runtimes[long]) / runtimes[long]))
