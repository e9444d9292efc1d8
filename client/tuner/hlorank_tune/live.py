"""The progress of a search: a line for every measurement, and for what takes long."""

from time import monotonic

import numpy as np

from hlorank_tune.run import Measurement, Run, duration


class ProgressLines:
    """A listener that prints every new measurement.

    A phase has a line if nothing else was printed for ``quiet_seconds``.
    """

    def __init__(self, version: str = "", quiet_seconds: float = 8.0):
        """``version`` is the compiler that what is found belongs to, which is said once."""
        self._quiet = quiet_seconds
        self._version = version
        self._begin = self._last = monotonic()
        self._printed: int | None = None

    def __call__(self, run: Run) -> None:
        """Shows the state of a run."""
        if self._printed is None:
            self._printed = 0
            if self._version:
                self._print(f"what is found is for {self._version}")
            if run.earlier and not run.is_complete:
                self._print(f"goes on after {run.earlier} measurements")
        for measurement in run.measurements[self._printed :]:
            self._print("  ".join(cells(run, measurement)).rstrip())
        self._printed = len(run.measurements)
        if run.phase and monotonic() - self._last >= self._quiet:
            self._print(f"{'...':>6}  {run.phase} ({monotonic() - self._begin:.0f} s)")

    def _print(self, line: str) -> None:
        print(line, flush=True)
        self._last = monotonic()


def score_name(run: Run) -> str:
    """Returns what a score is: a predicted run time if a model predicts seconds."""
    return "predicted" if any(m.unit == "seconds" for m in run.measurements) else "score"


def score_text(measurement: Measurement) -> str:
    """Formats a score; empty without one."""
    if measurement.score is None:
        return ""
    if measurement.unit == "seconds":
        return duration(round(1e9 * measurement.score))
    return f"{measurement.score:.4f}"


def cells(run: Run, measurement: Measurement) -> list[str]:
    """Returns the aligned cells of a measurement's row."""
    outcome = measurement.outcome
    ratio = f"{outcome.ratio:.3f}" if np.isfinite(outcome.ratio) else ""
    return [
        f"{measurement.number:>6}",
        f"{outcome.status:<15}",
        f"{duration(outcome.nanoseconds):>9}",
        f"{duration(outcome.reference):>9}",
        f"{ratio:>6}",
        f"{score_text(measurement):>9}",
        f"{measurement.seconds:>6.0f} s",
        *([measurement.subject] if run.subjects else []),
        outcome.message,
    ]
