"""The state of a search, read from its results file."""

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from hlorank.task import Task
from hlorank.tune.hardware import Outcome
from hlorank.tune.journal import RESULTS_FILE, JournalError, read_rows


@dataclass(frozen=True)
class Measurement:
    """A candidate that was measured, or failed."""

    number: int
    """Position in the order of measurements; 0 is the default."""
    candidate: Any
    """The candidate as JSON."""
    outcome: Outcome
    score: float | None
    """The model's score; None without a prediction."""
    seconds: float
    """Time since the search began."""


@dataclass
class Run:
    """One search and its results."""

    program: str
    task: Task
    strategy: str
    with_model: bool
    measurements: list[Measurement] = field(default_factory=list)
    predictions: int = 0
    errors: list[str] = field(default_factory=list)
    """Errors of the steps that ran without the model."""
    best: int | None = None
    """Number of the winner, once it is known; 0 if nothing is faster than the default."""
    noise: float | None = None
    """Relative difference of two measurements of one program, at the end."""
    confirmed: dict[int, Outcome] = field(default_factory=dict)
    """The longer measurements at the end, by number."""

    def add(self, row: dict[str, Any]) -> None:
        """Adds a row of the results file."""
        if "candidate" in row:
            number, score = len(self.measurements), row.get("score")
            self.measurements.append(
                Measurement(number, row["candidate"], _outcome(row), score, row["seconds"])
            )
        elif "predictions" in row:
            self.predictions += row["predictions"]
            self.errors += [row["error"]] if "error" in row else []
        elif "best" in row:
            self.best, self.noise = self._number(row["best"]), row["noise"]
            self.confirmed = {self._number(o["candidate"]): _outcome(o) for o in row["confirmed"]}

    def _number(self, candidate: Any) -> int:
        return next(m.number for m in self.measurements if m.candidate == candidate)

    def fastest(self) -> list[Measurement]:
        """Returns the measurements of candidates that work, by ratio to the default."""
        working = [m for m in self.measurements if np.isfinite(m.outcome.ratio)]
        return sorted(working, key=lambda m: m.outcome.ratio)

    def curve(self) -> np.ndarray:
        """Returns the best ratio to the default so far: f64 [measurements].

        It never exceeds 1, since the default is always available.
        """
        ratios = [min(m.outcome.ratio, 1.0) for m in self.measurements]
        return np.minimum.accumulate(np.array([1.0, *ratios[1:]]))

    def __str__(self) -> str:
        """Summarizes the run in one line."""
        spent = f"after {len(self.measurements)} measurements"
        if self.best is None:
            return f"{self.program}: still searching {spent}"
        if not self.best:
            return f"{self.program}: nothing is faster than the default {spent}"
        return (
            f"{self.program}: {1 / self.final_ratio:.2f} times as fast as the default {spent} "
            f"(noise {self.noise:.1%})"
        )

    @property
    def winner(self) -> Measurement | None:
        """The measurement of the winner; None until it is known."""
        return None if self.best is None else self.measurements[self.best]

    @property
    def final_ratio(self) -> float:
        """The winner's time divided by the default's, in the longer measurement."""
        return 1.0 if not self.best else self.confirmed[self.best].ratio


def read_run(folder: Path) -> tuple[dict[str, Any], Run]:
    """Reads the description and the results of the run in a folder.

    Raises:
        JournalError: if the results are missing or broken.
    """
    rows = read_rows(folder / RESULTS_FILE)
    try:
        head = next(rows)["run"]
        run = Run(head["program"], head["task"], head["strategy"], head["with_model"])
        for row in rows:
            run.add(row)
    except (StopIteration, KeyError, TypeError) as error:
        raise JournalError(f"{folder / RESULTS_FILE} contains no results of a run") from error
    return head, run


def _outcome(row: dict[str, Any]) -> Outcome:
    return Outcome(**{f.name: row[f.name] for f in fields(Outcome)})
