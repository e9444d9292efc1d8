"""Reports on runs: tables of candidates, and plots of the best found against measurements."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from tabulate import tabulate

from hlorank_tune.live import score_name, score_text
from hlorank_tune.measure.atomic_files import file_name, write_atomically
from hlorank_tune.run import Measurement, Run, duration, read_run

REPORT = "report.md"
_SHOWN = 10
_BAR = 20
"""Letters of a bar that is the whole time."""
_COLOURS = ("#2f6fab", "#c2410c", "#6b7785", "#4d7c0f", "#7e22ce")
_STYLE = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "font.size": 9,
    "grid.color": "#e6eaee",
    "svg.fonttype": "none",
    "svg.hashsalt": "hlorank",
}


def write_report(folders: Sequence[Path], out: Path) -> Path:
    """Writes ``report.md`` and its plots into ``out``; runs of the same program share a plot.

    Raises:
        JournalError: if a folder contains no results.
    """
    runs = [read_run(folder)[1] for folder in folders]
    by_program: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        by_program[run.program].append(run)
    page = ["# Tuning", "", *_summary(runs)]
    plots: list[str] = []
    for program, its_runs in by_program.items():
        stem = file_name(program)
        alike = sum(file_name(other) == stem for other in list(by_program)[: len(plots)])
        plots.append(f"{stem}-{alike + 1}.svg" if alike else f"{stem}.svg")
        searches: dict[str, list[Run]] = defaultdict(list)
        for run in its_runs:
            searches[label(run)].append(run)
        plot_curves(program, searches, out / plots[-1])
        page += ["", f"## {program}", "", f"![Best found against measurements]({plots[-1]})"]
        for run in its_runs:
            page += ["", *_section(run)]
    path = out / REPORT
    write_atomically(path, ("\n".join(page) + "\n").encode())
    return path


def label(run: Run) -> str:
    """Describes how a run searched."""
    return f"{'with' if run.with_model else 'without'} the model"


def _summary(runs: Sequence[Run]) -> list[str]:
    head = ["program", "search", "measured", "failed", "predictions", "reference", "default"]
    head += ["best", "best / reference"]
    rows = []
    for run in runs:
        own = run.confirmed.get(0) or next((m.outcome for m in run.of()), None)
        times = own, run.default_outcome if run.default else own, run.final
        row = [run.program, label(run), str(len(run.measurements))]
        row += [str(len(_failures(run.measurements))), f"{run.predictions:,}"]
        row += [duration(outcome.nanoseconds) if outcome else "" for outcome in times]
        rows.append([*row, "not ended" if run.best is None else f"{run.final_ratio:.3f}"])
    return table(head, rows, words=2)


def _failures(measurements: Sequence[Measurement]) -> list[Measurement]:
    return [m for m in measurements if m.outcome.nanoseconds is None]


def _section(run: Run) -> list[str]:
    lines = [f"### {label(run)}", ""]
    lines += [f"{run}.", ""] if run.is_complete else []
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


@rc_context(_STYLE)
def plot_curves(title: str, searches: Mapping[str, Sequence[Run]], path: Path) -> None:
    """Plots the best time so far against measurements, with one line per kind of search.

    Several runs are shown as their median, in a band from the 10th to the 90th percentile.
    """
    figure = Figure(figsize=(7.2, 3.4), layout="constrained")
    axes = figure.subplots()
    for colour, (name, runs) in zip(_COLOURS * 9, searches.items(), strict=False):
        curves = [run.curve() for run in runs]
        length = max(map(len, curves))
        # Each is extended with its last value: f64 [runs, measurements].
        curves = np.stack([np.pad(one, (0, length - len(one)), mode="edge") for one in curves])
        count = np.arange(1, curves.shape[1] + 1)
        axes.step(count, np.median(curves, 0), where="post", label=name, color=colour)
        if len(curves) > 1:
            low, high = np.percentile(curves, [10, 90], axis=0)
            axes.fill_between(count, low, high, step="post", color=colour, alpha=0.15, lw=0)
    axes.set(title=title, xlabel="measurements", ylabel="best time / reference")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="svg", metadata={"Date": None})
