"""The state of a search, read from its results file."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from hlorank.task import Task
from hlorank.tune.budget import PARTS
from hlorank.tune.hardware import Outcome
from hlorank.tune.journal import RESULTS_FILE, JournalError, read_rows


@dataclass(frozen=True)
class Measurement:
    """A candidate that was measured, or failed."""

    number: int
    """Position in the order of measurements; 0 is the user's program."""
    candidate: Any
    """The candidate as JSON; ``{}`` is the user's program."""
    outcome: Outcome
    score: float | None
    """The model's score; None without a prediction."""
    seconds: float
    """Time since the search began."""
    unit: str | None = None
    """``seconds`` if the score is a predicted run time; None if scores only order candidates."""


@dataclass
class Run:
    """One search and its results."""

    program: str
    task: Task
    strategy: str
    with_model: bool
    subject: str = "program"
    """What the user's program is called: program or function."""
    default: Any = field(default_factory=dict)
    """The default's candidate; ``{}`` if it is the user's program."""
    phase: str = field(default="", compare=False)
    """What the search does now."""
    measurements: list[Measurement] = field(default_factory=list)
    predictions: int = 0
    errors: list[str] = field(default_factory=list)
    """Errors of the steps that ran without the model."""
    is_lost: bool = False
    """Whether the last predictions failed."""
    best: int | None = None
    """Number of the winner, once it is known; 0 if nothing is faster than the user's program."""
    noise: float | None = None
    """Relative difference of two measurements of one program, at the end."""
    parts: list[dict[int, Outcome]] = field(default_factory=list)
    """The parts of the confirmation: measurements at the end, by number."""
    kernels: list[dict[str, Any]] | None = None
    """Candidates with their kernels and predicted times, the longest first: of fusions, the default
    and the winner if the server answered; None until they are known."""
    seconds: float = 0.0
    """Time that the search has taken until now."""
    kept: str = field(default="", compare=False)
    """What became of the measurements at the server; empty without a server."""

    def add(self, row: dict[str, Any]) -> None:
        """Adds a row of the results file."""
        self.seconds = row.get("seconds", self.seconds)
        if "candidate" in row:
            number, score = len(self.measurements), row.get("score")
            # Fusions have no other scores.
            unit = row.get("unit", "seconds" if self.task == "fusion" else None)
            self.measurements.append(
                Measurement(number, row["candidate"], _outcome(row), score, row["seconds"], unit)
            )
        elif "predictions" in row:
            self.predictions += row["predictions"]
            self.errors += [row["error"]] if "error" in row else []
            self.is_lost = "error" in row
        elif "best" in row:
            self.best, self.noise = self._number(row["best"]), row["noise"]
        elif "kernels" in row:
            self.kernels = row["kernels"]
        elif "confirmed" in row:
            self.parts.append({self._number(o["candidate"]): _outcome(o) for o in row["confirmed"]})

    def _number(self, candidate: Any) -> int:
        return next(m.number for m in self.measurements if m.candidate == candidate)

    def fastest(self) -> list[Measurement]:
        """Returns the measurements of candidates that work, by ratio to the user's program."""
        working = [m for m in self.measurements if np.isfinite(m.outcome.ratio)]
        return sorted(working, key=lambda m: m.outcome.ratio)

    def curve(self) -> np.ndarray:
        """Returns the best ratio to the user's program so far: f64 [measurements].

        It never exceeds 1, since the program itself is always available.
        """
        ratios = [min(m.outcome.ratio, 1.0) for m in self.measurements]
        return np.minimum.accumulate(np.array([1.0, *ratios[1:]]))

    @property
    def confirmed(self) -> dict[int, Outcome]:
        """The minima of all parts of the confirmation, by number."""
        reference = min(
            (o.reference for p in self.parts for o in p.values() if o.reference), default=0
        )
        return {number: self._minimum(number, reference) for p in self.parts[:1] for number in p}

    def _minimum(self, number: int, reference: int) -> Outcome:
        outcomes = [part[number] for part in self.parts]
        failed = [outcome for outcome in outcomes if not np.isfinite(outcome.ratio)]
        if failed:
            return failed[0]
        noise = float(np.median([outcome.noise or 0.0 for outcome in outcomes]))
        fastest = min(outcomes, key=lambda outcome: outcome.nanoseconds)
        return replace(fastest, reference=reference, noise=noise)

    @property
    def default_name(self) -> str:
        """The default and its verb, as the beginning of a sentence about its time."""
        if self.task == "fusion":
            return "the compiler's own fusions, written out, take"
        return "the default takes"

    @property
    def default_outcome(self) -> Outcome | None:
        """The default's last measurement; None if the default is the user's program."""
        if not self.default:
            return None
        found = (m for m in self.measurements if m.candidate == self.default)
        measured = next(found, None)
        return measured and self.confirmed.get(measured.number, measured.outcome)

    @property
    def server_problem(self) -> str:
        """Describes how predictions failed; empty if none did."""
        if not self.errors:
            return ""
        if self.is_lost:
            return (
                f"the server stopped answering after {self.predictions:,} predictions; the rest "
                "was searched without the model"
            )
        return (
            f"{len(self.errors)} rounds of predictions failed, and were searched without the model"
        )

    def __str__(self) -> str:
        """Summarizes the run in one line."""
        parts = [f"{self.program}: {self.verdict}"]
        if self.default_outcome and self.default_outcome.reference:
            ratio = self.default_outcome.ratio
            parts += [f"{self.default_name} {ratio:.2f} times the time of your {self.subject}"]
        return "; ".join([*parts, *filter(None, [self.server_problem])])

    @property
    def verdict(self) -> str:
        """What the run found, as a sentence without a full stop."""
        own = f"your {self.subject}"
        if self.best is None:
            return f"still searching after {len(self.measurements)} measurements"
        if not self.parts:
            return f"no candidate that works was measured, so the winner is {own}"
        spent = f"after {len(self.measurements)} measurements"
        based = f"noise {self.noise:.1%}" + (
            f", measured again {len(self.parts)} of {PARTS} times for lack of time"
            if len(self.parts) < PARTS
            else ""
        )
        if not self.best:
            return f"nothing is faster than {own} {spent} ({based})"
        return f"{1 / self.final_ratio:.2f} times as fast as {own} {spent} ({based})"

    @property
    def winner(self) -> Measurement | None:
        """The measurement of the winner; None until it is known."""
        return None if self.best is None else self.measurements[self.best]

    @property
    def final_ratio(self) -> float:
        """The winner's time divided by that of the user's program, in the confirmation."""
        return 1.0 if not self.best else self.confirmed[self.best].ratio


Listener = Callable[[Run], None]
"""Called with the state of the run after every change, and in every phase."""


def read_run(folder: Path) -> tuple[dict[str, Any], Run]:
    """Reads the description and the results of the run in a folder.

    Raises:
        JournalError: if the results are missing or broken.
    """
    rows = read_rows(folder / RESULTS_FILE)
    try:
        head = next(rows)["run"]
        names = ("program", "task", "strategy", "with_model", "subject", "default")
        run = Run(**{name: head[name] for name in names})
        for row in rows:
            run.add(row)
    except (StopIteration, KeyError, TypeError) as error:
        raise JournalError(f"{folder / RESULTS_FILE} contains no results of a run") from error
    return head, run


def _outcome(row: dict[str, Any]) -> Outcome:
    # Results of earlier versions do not say whose failure it is.
    known = {"failure": None} | row
    return Outcome(**{f.name: known[f.name] for f in fields(Outcome)})
