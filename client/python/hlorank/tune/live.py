"""The progress display of a search."""

from types import TracebackType
from typing import Self

import numpy as np
from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from hlorank.tune.run import Measurement, Run

_ROWS = 12


class LiveTable:
    """A table that is redrawn during the search; without a terminal, one line per measurement."""

    def __init__(self, console: Console, measurements: int):
        """``measurements`` is the maximum number of measurements."""
        self._console, self._budget = console, measurements
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None
        self._printed = 0

    def __call__(self, run: Run) -> None:
        """Shows the state of a run."""
        if self._live is not None:
            self._live.update(self._table(run), refresh=True)
            return
        for measurement in run.measurements[self._printed :]:
            line = "  ".join(cells(measurement)).rstrip()
            self._console.print(line, highlight=False, markup=False, soft_wrap=True)
        self._printed = len(run.measurements)

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def _table(self, run: Run) -> Table:
        table = Table(box=None, pad_edge=False, header_style="bold", title_justify="left")
        table.title = Text(headline(run))
        for name in COLUMNS:
            # Only messages are truncated.
            justify = "left" if name in ("", "message") else "right"
            table.add_column(name, justify=justify, no_wrap=name != "message")
        fastest = run.fastest()[:1]
        for measurement in run.measurements[-_ROWS:]:
            style = "green" if measurement in fastest else None
            style = style if np.isfinite(measurement.outcome.ratio) else "yellow"
            texts = [Text(c, no_wrap=True, overflow="ellipsis") for c in cells(measurement)]
            table.add_row(*texts, style=style)
        frame = Table.grid()
        frame.add_row(table)
        frame.add_row(ProgressBar(self._budget, len(run.measurements), width=60))
        return frame


COLUMNS = ("number", "", "time", "default", "ratio", "score", "elapsed", "message")


def cells(measurement: Measurement) -> list[str]:
    """Returns the aligned cells of a measurement's row."""
    outcome = measurement.outcome
    score = "" if measurement.score is None else f"{measurement.score:.4f}"
    ratio = f"{outcome.ratio:.3f}" if np.isfinite(outcome.ratio) else ""
    return [
        f"{measurement.number:>6}",
        f"{outcome.status:<15}",
        f"{duration(outcome.nanoseconds):>9}",
        f"{duration(outcome.reference):>9}",
        f"{ratio:>6}",
        f"{score:>9}",
        f"{measurement.seconds:>6.0f} s",
        outcome.message,
    ]


def headline(run: Run) -> str:
    """Returns a run's summary in one line."""
    best = run.fastest()[:1]
    found = f"best {best[0].outcome.ratio:.3f} of the default" if best else "nothing measured yet"
    guide = f"{run.predictions:,} predictions" if run.with_model else "no model"
    failed = f", {len(run.errors)} without the model" if run.errors else ""
    return f"{run.program}, {run.task}, {run.strategy}: {found}; {guide}{failed}"


def duration(nanoseconds: int | None) -> str:
    """Formats a run time with a suitable unit."""
    if nanoseconds is None:
        return ""
    for limit, unit, scale in ((1e3, "ns", 1), (1e6, "µs", 1e3), (1e9, "ms", 1e6)):
        if nanoseconds < limit:
            return f"{nanoseconds / scale:.4g} {unit}"
    return f"{nanoseconds / 1e9:.4g} s"
