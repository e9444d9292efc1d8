"""The state of a search, which is read from its results file, and written there as it changes."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from hlorank_tune.journal import RESULTS_FILE, Journal, JournalError, read_rows
from hlorank_tune.subject import Outcome, Subject

PARTS = 3
"""Parts of the confirmation, each of which measures the same programs again."""


@dataclass(frozen=True)
class Measurement:
    """A candidate that was measured, or failed."""

    number: int
    """Position in the order of measurements."""
    candidate: Any
    """The candidate as JSON; ``{}`` is the reference."""
    outcome: Outcome
    score: float | None
    """The model's score; None without a prediction."""
    seconds: float
    """Time since the search began."""
    unit: str | None = None
    """``seconds`` if the score is a predicted run time; None if scores only order candidates."""
    subject: str = ""
    """The part of the program that it is about; empty for the whole program."""
    calls: int = 1
    """How often the program runs that part."""


@dataclass
class Run:
    """One search and its results."""

    program: str
    task: str
    with_model: bool
    reference: str = "your program"
    """What the user calls the reference, beside which candidates are measured."""
    default: Any = field(default_factory=dict)
    """The default's candidate; ``{}`` if it is the reference."""
    default_name: str = "the default takes"
    """The default and its verb, as the beginning of a sentence about its time."""
    phase: str = field(default="", compare=False)
    """What the search does now."""
    measurements: list[Measurement] = field(default_factory=list)
    earlier: int = field(default=0, compare=False)
    """Number of the measurements of earlier processes, after which this one goes on."""
    predictions: int = 0
    errors: list[str] = field(default_factory=list)
    """Errors of the steps that ran without the model."""
    is_lost: bool = False
    """Whether the last predictions failed."""
    best: int | None = None
    """Number of the winner, once it is known; 0 if nothing is faster than the reference."""
    left_alone: dict[str, str] = field(default_factory=dict)
    """What was not tuned, with the reason."""
    reason: str = ""
    """Why nothing is faster, if there is something to say."""
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
        if "run" in row:
            # It goes on with a larger budget, so the result is open again.
            self.best = self.noise = self.kernels = None
            self.parts, self.left_alone, self.reason = [], {}, ""
        elif "candidate" in row:
            # A compiler with several subjects writes the last two; the others have one, once.
            measurement = Measurement(
                len(self.measurements),
                row["candidate"],
                _outcome(row),
                row.get("score"),
                row["seconds"],
                row.get("unit"),
                row.get("subject", ""),
                row.get("calls", 1),
            )
            self.measurements.append(measurement)
        elif "predictions" in row:
            self.predictions += row["predictions"]
            self.errors += [row["error"]] if "error" in row else []
            self.is_lost = "error" in row
        elif "best" in row:
            self.best = self._number(row["best"])
            self.noise = row["noise"]
            self.reason = row.get("reason", "")
        elif "left_alone" in row:
            self.left_alone |= row["left_alone"]
        elif "kernels" in row:
            self.kernels = row["kernels"]
        elif "confirmed" in row:
            self.parts.append({self._number(o["candidate"]): _outcome(o) for o in row["confirmed"]})

    def _number(self, candidate: Any) -> int:
        if not candidate:
            return 0
        return next(m.number for m in self.of() if m.candidate == candidate)

    @property
    def is_complete(self) -> bool:
        """Whether the result is known."""
        return self.best is not None

    @property
    def subjects(self) -> list[str]:
        """The parts of the program that were measured, in the order of their first measurements."""
        names = dict.fromkeys(m.subject for m in self.measurements)
        return [name for name in names if name]

    def of(self, subject: str = "") -> list[Measurement]:
        """Returns the measurements of a part; of the whole program by default."""
        return [m for m in self.measurements if m.subject == subject]

    def fastest(self, subject: str = "") -> list[Measurement]:
        """Returns the measurements of candidates that work, the fastest first.

        They are ordered by the ratio to the reference, or by their times if that does not work.
        """
        working = [m for m in self.of(subject) if m.outcome.nanoseconds]
        return sorted(working, key=lambda m: (m.outcome.ratio, m.outcome.nanoseconds))

    @property
    def confirmed(self) -> dict[int, Outcome]:
        """The minima of all parts of the confirmation, by number."""
        reference = min(
            (o.reference for p in self.parts for o in p.values() if o.reference), default=0
        )
        minima: dict[int, Outcome] = {}
        for number in self.parts[0] if self.parts else ():
            outcomes = [part[number] for part in self.parts]
            failed = [outcome for outcome in outcomes if not np.isfinite(outcome.ratio)]
            noise = float(np.median([outcome.noise or 0.0 for outcome in outcomes]))
            fastest = min(outcomes, key=lambda outcome: outcome.nanoseconds or 0)
            minima[number] = (
                failed[0] if failed else replace(fastest, reference=reference, noise=noise)
            )
        return minima

    @property
    def default_outcome(self) -> Outcome | None:
        """The default's last measurement; None if the default is the reference."""
        if not self.default:
            return None
        found = (m for m in self.of() if m.candidate == self.default)
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
            parts += [f"{self.default_name} {ratio:.2f} times the time of {self.reference}"]
        return "; ".join([*parts, *filter(None, [self.server_problem])])

    @property
    def verdict(self) -> str:
        """What the run found, as a sentence without a full stop."""
        spent = f"after {len(self.measurements)} measurements"
        if self.best is None:
            return f"still searching {spent}"
        if self.reason:
            return f"nothing is faster than {self.reference} {spent} ({self.reason})"
        working = self.fastest()
        if all(not m.candidate for m in working):
            return f"no candidate that works was measured, so the winner is {self.reference}"
        if not np.isfinite(working[0].outcome.ratio):
            fastest = duration(working[0].outcome.nanoseconds)
            return f"the fastest candidate takes {fastest} {spent}; {self.reference} does not work"
        based = f"noise {self.noise:.1%}"
        if len(self.parts) not in (0, PARTS):
            based += f", measured again {len(self.parts)} of {PARTS} times for lack of time"
        if not self.best:
            return f"nothing is faster than {self.reference} {spent} ({based})"
        return f"{1 / self.final_ratio:.2f} times as fast as {self.reference} {spent} ({based})"

    @property
    def winner(self) -> Measurement | None:
        """The measurement of the winner; None until it is known, or if nothing was measured."""
        if self.best is None:
            return None
        if self.best:
            return self.measurements[self.best]
        return next((m for m in self.of() if not m.candidate), None)

    @property
    def final(self) -> Outcome | None:
        """The winner's last measurement, in the confirmation if there is one."""
        if self.best is None or self.winner is None:
            return None
        return self.confirmed.get(self.best, self.winner.outcome)

    @property
    def final_ratio(self) -> float:
        """The winner's time divided by the reference's; 1 if the reference is the winner."""
        return self.final.ratio if self.best and self.final else 1.0


Listener = Callable[[Run], None]
"""Called with the state of the run after every change, and in every phase."""


@contextmanager
def _of_this_search(what: str) -> Iterator[None]:
    """Says what of the results is of another search, which happens if the file was edited."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, StopIteration) as error:
        raise JournalError(f"{what} of the results is not of this search") from error


class Progress:
    """Keeps run, journal and display alike; begins with what the journal has of an earlier process.

    Raises:
        JournalError: if a row of the journal belongs to something else.
    """

    def __init__(self, run: Run, journal: Journal, listener: Listener):
        self.run = run
        self._journal = journal
        self._listener = listener
        self.clock: Callable[[], float] = lambda: 0.0
        """Returns the seconds since the search began."""
        self.spent = 0.0
        """Seconds that earlier processes took."""
        for number, row in enumerate(journal.rows, 2):
            with _of_this_search(f"line {number}"):
                self.run.add(row)
                self.spent = max(self.spent, float(row["seconds"]))
        run.earlier = len(run.measurements)

    def read(self, subject: Subject[Any], measurement: Measurement) -> Any:
        """Converts the candidate of an earlier measurement back."""
        with _of_this_search(f"measurement {measurement.number}"):
            return subject.read(measurement.candidate)

    def add(
        self,
        subject: Subject[Any],
        candidate: Any,
        outcome: Outcome,
        score: float | None = None,
        unit: str | None = None,
    ) -> None:
        """Adds a measurement."""
        row = {"candidate": subject.written(candidate), **asdict(outcome)}
        if subject.name:
            row |= {"subject": subject.name, "calls": subject.calls}
        if score is not None:
            row |= {"score": score, "unit": unit}
        self.write(row)

    def write(self, row: dict[str, Any]) -> None:
        """Adds a row."""
        row |= {"seconds": round(self.clock(), 1)}
        self._journal.write(row)
        self.run.add(row)

    def leave_alone(self, reasons: Mapping[str, str]) -> None:
        """Adds what is not tuned, with the reason."""
        if reasons:
            self.write({"left_alone": dict(reasons)})

    def show(self, phase: str | None = None) -> None:
        """Shows the state; ``phase`` is what the search does now, if that changed."""
        self.run.phase = self.run.phase if phase is None else phase
        self._listener(self.run)


def read_run(folder: Path) -> tuple[dict[str, Any], Run]:
    """Reads the description and the results of the run in a folder.

    Raises:
        JournalError: if the results are missing or broken.
    """
    rows = read_rows(folder / RESULTS_FILE)
    try:
        head = next(rows)["run"]
        described = ("program", "task", "with_model", "reference", "default", "default_name")
        run = Run(**{name: head[name] for name in described})
        for row in rows:
            head = row.get("run", head)
            run.add(row)
    except (StopIteration, KeyError, TypeError) as error:
        raise JournalError(f"{folder / RESULTS_FILE} contains no results of a run") from error
    return head, run


def _outcome(row: dict[str, Any]) -> Outcome:
    return Outcome(**{f.name: row[f.name] for f in fields(Outcome)})


def duration(nanoseconds: float | None) -> str:
    """Formats a run time with a suitable unit."""
    if nanoseconds is None:
        return ""
    for limit, unit, scale in ((1e3, "ns", 1), (1e6, "µs", 1e3), (1e9, "ms", 1e6)):
        if nanoseconds < limit:
            return f"{nanoseconds / scale:.4g} {unit}"
    return f"{nanoseconds / 1e9:.4g} s"
