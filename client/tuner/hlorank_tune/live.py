"""The progress display of a search."""

from collections.abc import Callable
from threading import Event, Lock, Thread
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


SECONDS = 0.5
"""How often the function is called, which disturbs no measurement: those run in processes."""


class Heartbeat:
    """Calls a function from a thread, from ``start`` to ``stop``.

    The function is called with ``lock`` held, as is everything that changes what it reads.
    """

    def __init__(self, beat: Callable[[], None]):
        self._beat = beat
        self.lock = Lock()
        self._end = Event()
        self._thread = Thread(target=self._repeat, daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread, and waits for it."""
        self._end.set()
        self._thread.join()

    def _repeat(self) -> None:
        while not self._end.wait(SECONDS):
            with self.lock:
                self._beat()


class LiveTable:
    """A table that is redrawn during the search.

    Without a terminal, there is one line per measurement, and one with the phase if nothing
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
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None
        self._quiet = quiet_seconds
        self._version = version
        self._begin = self._last = monotonic()
        self._printed = 0
        self._run: Run | None = None
        self._heartbeat = Heartbeat(self._beat)

    def __call__(self, run: Run) -> None:
        """Shows the state of a run."""
        with self._heartbeat.lock:
            self._run = run
            if self._version:
                self._print(f"what is found is for {self._version}")
                self._version = ""
            if len(run.measurements) > self._printed or not run.phase:
                self._show(run)

    def _show(self, run: Run) -> None:
        if self._live is not None:
            self._live.update(self._table(run), refresh=True)
        else:
            for measurement in run.measurements[self._printed :]:
                self._print("  ".join(cells(run, measurement)).rstrip())
        self._printed = len(run.measurements)

    def _print(self, line: str) -> None:
        self._console.print(line, highlight=False, markup=False, soft_wrap=True)
        self._last = monotonic()

    def _beat(self) -> None:
        phase = self._run.phase if self._run is not None else "starting"
        if self._live is not None and self._run is not None:
            self._live.update(self._table(self._run), refresh=True)
        elif self._live is None and monotonic() - self._last >= self._quiet:
            self._print(f"{'...':>6}  {phase} ({monotonic() - self._begin:.0f} s)")

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        self._heartbeat.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._heartbeat.stop()
        if self._live is not None:
            self._live.stop()

    def _total(self, run: Run) -> int:
        return self._budget * max(1, len(run.subjects))

    def _table(self, run: Run) -> Table:
        table = Table(box=None, pad_edge=False, header_style="bold", title_justify="left")
        table.title = Text(headline(run))
        columns = columns_of(run)
        for name in columns:
            # Only messages are truncated.
            justify = "left" if name in ("", "part", TEXT) else "right"
            table.add_column(name, justify=justify, no_wrap=name != TEXT)
        fastest = run.fastest()[:1]
        for measurement in run.measurements[-_ROWS:]:
            style = "green" if measurement in fastest else None
            style = style if np.isfinite(measurement.outcome.ratio) else "yellow"
            texts = [Text(c, no_wrap=True, overflow="ellipsis") for c in cells(run, measurement)]
            table.add_row(*texts, style=style)
        frame = Table.grid()
        frame.add_row(table)
        frame.add_row(ProgressBar(self._total(run), len(run.measurements), width=60))
        frame.add_row(Text(f"{run.phase} ({monotonic() - self._begin:.0f} s)" if run.phase else ""))
        return frame


def columns_of(run: Run) -> list[str]:
    """Returns the names of the cells; times are compared to the reference."""
    part = ["part"] if run.subjects else []
    return ["number", "", "time", run.reference, "ratio", score_name(run), "elapsed", *part, TEXT]


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
    return f"{run.program}, {run.task}, {run.strategy}: {found}{beside}; {guide}{failed}"
