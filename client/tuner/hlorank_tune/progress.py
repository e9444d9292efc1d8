"""The state of a search, which is written to the journal and shown as it changes."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from hlorank_tune.journal import Journal, JournalError
from hlorank_tune.run import Listener, Measurement, Run
from hlorank_tune.subject import Outcome, Subject


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
            self.spent = max(self.spent, self._add_earlier(number, row))

    def _add_earlier(self, number: int, row: dict[str, Any]) -> float:
        """Adds a row of line ``number``, and returns the seconds until then."""
        try:
            self.run.add(row)
            return float(row["seconds"])
        # Happens if the file was edited.
        except (KeyError, TypeError, ValueError, AttributeError, StopIteration) as error:
            message = f"line {number} of the results does not belong to this search"
            raise JournalError(message) from error

    def read(self, subject: Subject[Any], measurement: Measurement) -> Any:
        """Converts the candidate of an earlier measurement back."""
        try:
            return subject.read(measurement.candidate)
        except (KeyError, TypeError, ValueError, AttributeError, StopIteration) as error:
            message = f"measurement {measurement.number} of the results is not of this search"
            raise JournalError(message) from error

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

    def phase(self, description: str) -> None:
        """Shows what the search does now."""
        self.run.phase = description
        self._listener(self.run)

    def show(self) -> None:
        """Shows the state."""
        self._listener(self.run)
