"""The progress display of a search."""

from time import monotonic
from typing import Any, Self

import numpy as np
from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from hlorank_tune.run import Measurement, Run, duration

_ROWS = 12
TEXT = "message"


class LiveTable:
    """A table that is redrawn during the search.

    Without a terminal, there is one line per measurement, and one with a new phase if nothing
    else was printed for ``quiet_seconds``.
    """

    def __init__(
        self, console: Console, measurements: int, quiet_seconds: float = 8.0, version: str = ""
    ):
        """``measurements`` is the maximum number of measurements of a part of the program.

        ``version`` is the compiler that what is found belongs to, which is said once.
        """
        self._console = console
        self._budget = measurements
        self._run: Run | None = None
        # Redrawing disturbs no measurement: those run in processes.
        live = Live(console=console, get_renderable=self._table, refresh_per_second=2)
        self._live = live if console.is_terminal else None
        self._quiet = quiet_seconds
        self._version = version
        self._begin = self._last = monotonic()
        self._printed = 0

    def __call__(self, run: Run) -> None:
        """Shows the state of a run."""
        if self._version:
            self._print(f"what is found is for {self._version}")
            self._version = ""
        if self._run is None and run.earlier and not run.is_complete:
            self._print(f"goes on after {run.earlier} measurements")
        self._run = run
        new = run.measurements[self._printed :]
        self._printed = len(run.measurements)
        if self._live is not None:
            if new or not run.phase:
                self._live.refresh()
            return
        for measurement in new:
            self._print("  ".join(cells(run, measurement)).rstrip())
        if run.phase and monotonic() - self._last >= self._quiet:
            self._print(f"{'...':>6}  {run.phase} ({monotonic() - self._begin:.0f} s)")

    def _print(self, line: str) -> None:
        self._console.print(line, highlight=False, markup=False, soft_wrap=True)
        self._last = monotonic()

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: Any) -> None:
        if self._live is not None:
            self._live.stop()

    def _table(self) -> Table:
        frame = Table.grid()
        run = self._run
        if run is None:
            return frame
        table = Table(box=None, pad_edge=False, header_style="bold", title_justify="left")
        table.title = Text(headline(run))
        # Times are compared to the reference.
        part = ["part"] if run.subjects else []
        columns = ["number", "", "time", run.reference, "ratio", score_name(run), "elapsed"]
        for name in [*columns, *part, TEXT]:
            # Only messages are truncated.
            justify = "left" if name in ("", "part", TEXT) else "right"
            table.add_column(name, justify=justify, no_wrap=name != TEXT)
        fastest = run.fastest()[:1]
        for measurement in run.measurements[-_ROWS:]:
            style = "green" if measurement in fastest else None
            style = style if np.isfinite(measurement.outcome.ratio) else "yellow"
            texts = [Text(c, no_wrap=True, overflow="ellipsis") for c in cells(run, measurement)]
            table.add_row(*texts, style=style)
        total = self._budget * max(1, len(run.subjects))
        frame.add_row(table)
        frame.add_row(ProgressBar(total, len(run.measurements), width=60))
        frame.add_row(Text(f"{run.phase} ({monotonic() - self._begin:.0f} s)" if run.phase else ""))
        return frame


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
    part = [measurement.subject] if run.subjects else []
    return [
        f"{measurement.number:>6}",
        f"{outcome.status:<15}",
        f"{duration(outcome.nanoseconds):>9}",
        f"{duration(outcome.reference):>9}",
        f"{ratio:>6}",
        f"{score_text(measurement):>9}",
        f"{measurement.seconds:>6.0f} s",
        *part,
        outcome.message,
    ]


def headline(run: Run) -> str:
    """Returns a run's summary in one line."""
    is_begun = any(np.isfinite(m.outcome.ratio) for m in run.measurements)
    best = f"best {run.curve()[-1]:.3f} of {run.reference}"
    found = best if is_begun else "nothing measured yet"
    default = run.default_outcome
    beside = f", default {default.ratio:.3f}" if default and default.reference else ""
    guide = f"{run.predictions:,} predictions" if run.with_model else "no model"
    failed = f", {len(run.errors)} rounds without the model" if run.errors else ""
    return f"{run.program}, {run.task}: {found}{beside}; {guide}{failed}"
