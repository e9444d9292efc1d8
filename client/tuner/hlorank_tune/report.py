"""What people see of a run: a line for every measurement, and a page of tables."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
from tabulate import tabulate

from hlorank_tune.measure.atomic_files import write_atomically
from hlorank_tune.run import Measurement, Run, duration, read_run

REPORT = "report.md"
_SHOWN = 10
_BAR = 20
"""Letters of a bar that is the whole time."""


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


def write_report(folder: Path) -> Path:
    """Writes ``report.md`` about the results of a folder into it.

    Raises:
        JournalError: if there are no results.
    """
    run = read_run(folder)[1]
    own = run.confirmed.get(0) or next((m.outcome for m in run.of()), None)
    times = own, run.default_outcome if run.default else own, run.final
    row = [str(len(run.measurements)), str(len(_failures(run.measurements)))]
    row += [f"{run.predictions:,}"]
    row += [duration(outcome.nanoseconds) if outcome else "" for outcome in times]
    row += ["not ended" if run.best is None else f"{run.final_ratio:.3f}"]
    head = ["measured", "failed", "predictions", "reference", "default", "best"]
    title = f"# {run.program}, {'with' if run.with_model else 'without'} the model"
    page = [title, "", *table([*head, "best / reference"], [row], words=0), "", *_section(run)]
    path = folder / REPORT
    write_atomically(path, ("\n".join(page) + "\n").encode())
    return path


def _failures(measurements: Sequence[Measurement]) -> list[Measurement]:
    return [m for m in measurements if m.outcome.nanoseconds is None]


def _section(run: Run) -> list[str]:
    lines = [f"{run}.", ""] if run.is_complete else []
    lines += _parts(run) if run.subjects else _fastest(run)
    if run.winner and run.winner.candidate:
        lines += ["", "The winner:", "", "```json", json.dumps(run.winner.candidate), "```"]
    for explained in run.kernels or ():
        lines += ["", *_kernels(run, explained)]
    failures = [
        [str(m.number), m.subject, m.outcome.status, m.outcome.message]
        for m in _failures(run.measurements)
    ]
    left = [list(pair) for pair in run.left_alone.items()]
    errors = [[str(run.errors.count(error)), error] for error in dict.fromkeys(run.errors)]
    for title, head, rows in (
        ("Failures:", ["number", "part", "", "message"], failures),
        ("Left as they are:", ["part", "reason"], left),
        ("Steps without the model:", ["times", "error"], errors),
    ):
        if rows:
            lines += ["", title, "", *table(head, rows, words=len(head))]
    return lines


def _fastest(run: Run) -> list[str]:
    """Returns the fastest candidates of the whole program."""
    head = ["number", "time", run.reference, "ratio", score_name(run), "elapsed"]
    rows = [
        [
            str(m.number),
            duration(m.outcome.nanoseconds),
            duration(m.outcome.reference),
            f"{m.outcome.ratio:.3f}",
            score_text(m),
            f"{m.seconds:.0f} s",
        ]
        for m in run.fastest()[:_SHOWN]
    ]
    title = f"The fastest of {len(run.measurements)} as the search measured them:"
    return [title, "", *table(head, rows, words=0)]


def _parts(run: Run) -> list[str]:
    """Returns what was found of every part, the longest first."""
    head = ["part", "calls", "reference", "best found", "ratio", "measured", "failed"]
    rows = []
    for part in run.subjects:
        measured = run.of(part)
        best = next(iter(run.fastest(part)), None)
        found = ["", ""]
        if best:
            found = [duration(best.outcome.nanoseconds), f"{best.outcome.ratio:.3f}"]
        row = [part, str(measured[0].calls), duration(measured[0].outcome.reference), *found]
        rows.append([*row, str(len(measured)), str(len(_failures(measured)))])
    return table(head, rows, words=1)


def _kernels(run: Run, explained: Mapping[str, Any]) -> list[str]:
    """Returns where a candidate's time goes: its longest kernels."""
    kernels = explained["kernels"]
    is_default = explained["candidate"] == run.default
    what = "The compiler's own fusions" if is_default else "The winner"
    if not kernels:
        return [f"{what}: a kernel is larger than the model's limit."]
    times = [kernel["seconds"] for kernel in kernels]
    total, rest = sum(times), sum(times[_SHOWN:])
    rows = [
        [
            kernel["name"],
            "█" * round(_BAR * kernel["seconds"] / total),
            str(kernel["computed_nodes"]),
            _predicted(kernel["seconds"]),
            f"{kernel['seconds'] / total:.1%}",
        ]
        for kernel in kernels[:_SHOWN]
    ]
    others = f", and {len(kernels) - _SHOWN} others with {_predicted(rest)}" if rest else ""
    count = f"{len(kernels)} kernel{'s' * (len(kernels) > 1)}"
    title = f"{what}: {count}, {_predicted(total)} predicted{others}:"
    return [title, "", *table(["writes", "", "computes", "time", "share"], rows, words=2)]


def _predicted(seconds: float) -> str:
    return duration(round(1e9 * seconds))


def table(head: Sequence[str], rows: Sequence[Sequence[str]], words: int) -> list[str]:
    """Returns the lines of a Markdown table; columns after the first ``words`` are numbers."""
    cells = [[" ".join(text.split()).replace("|", "\\|") for text in row] for row in rows]
    sides = ["left"] * words + ["right"] * (len(head) - words)
    return tabulate(
        cells, head, "pipe", disable_numparse=True, colalign=sides[: len(head)]
    ).splitlines()


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
