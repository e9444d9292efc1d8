"""What a search for schedules found: a table, a line, and files."""

from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hlorank.halide.features import FEATURE_SET
from hlorank.halide.schedule import Draw
from hlorank.measure.atomic_files import read_json, write_atomically, write_json
from hlorank.tune.duration import duration
from hlorank.tune.journal import RESULTS_FILE as JOURNAL
from hlorank.tune.journal import JournalError
from hlorank.tune.schedules.run import Candidate, ScheduleRun

SCHEDULE_FILE, RESULTS_FILE = "schedule.h", "results.json"


def table(run: ScheduleRun) -> str:
    """Returns the schedules that were measured, and everything that failed, in aligned columns."""
    numbered = enumerate(run.candidates, 1)
    shown = [(n, one) for n, one in numbered if one.nanoseconds is not None or one.problem]
    score = "predicted" if run.unit == "seconds" else "score"
    head = ("rank", score, "measured", "of greedy", "schedule")
    rows = [head, *(_cells(run, number, one) for number, one in shown)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    widths[-1] = 0
    lines = []
    for *numbers, text in rows:
        aligned = [cell.rjust(width) for cell, width in zip(numbers, widths, strict=False)]
        lines.append("  ".join([*aligned, text]).rstrip())
    return "\n".join(lines)


def _cells(run: ScheduleRun, number: int, candidate: Candidate) -> tuple[str, ...]:
    score, greedy = candidate.score, run.greedy
    is_compared = candidate.nanoseconds and greedy is not None and greedy.nanoseconds
    problem = f": {candidate.problem}" if candidate.problem else ""
    return (
        "" if score is None else str(number),
        _score_text(run, score),
        duration(candidate.nanoseconds),
        f"{candidate.nanoseconds / greedy.nanoseconds:.3f}" if is_compared else "",
        draw_text(candidate.draw) + problem,
    )


def _score_text(run: ScheduleRun, score: float | None) -> str:
    if score is None or not run.model:
        return ""
    return duration(1e9 * score) if run.unit == "seconds" else f"{score:.4f}"


def draw_text(draw: Draw) -> str:
    """Returns how a schedule was drawn."""
    parts = [
        f"beam {draw.beam}" if draw.beam > 1 else "",
        f"noise {draw.noise:g}" if draw.noise else "",
        f"{draw.keep} % of choices" if draw.keep < 100 else "",
    ]
    return f"draw {draw.number}: " + (", ".join(filter(None, parts)) or "greedy")


def times(run: ScheduleRun) -> str:
    """Says how long each step took."""
    drawn = f"{len(run.ranked)} distinct schedules"
    drawn += f", {run.repeats} repeated" if run.repeats else ""
    steps = ", ".join(f"{step} {seconds:.3g} s" for step, seconds in run.seconds.items())
    return f"{drawn}; {steps}"


def verdict(run: ScheduleRun) -> str:
    """Says in one line what the pipeline gains."""
    measured = sum(one.nanoseconds is not None for one in run.candidates)
    fastest, greedy = run.fastest, run.greedy
    if fastest is None:
        return f"{run.name}: no schedule works"
    if greedy is None or greedy.nanoseconds is None:
        return f"{run.name}: {duration(fastest.nanoseconds)}; the greedy schedule does not work"
    if not run.is_faster:
        return (
            f"{run.name}: nothing is faster than the greedy schedule "
            f"({duration(greedy.nanoseconds)}, noise {run.noise:.1%}) of {measured} measured"
        )
    return (
        f"{run.name}: {run.gain:.2f} times as fast as the greedy schedule "
        f"({duration(greedy.nanoseconds)} before, {duration(fastest.nanoseconds)} after, "
        f"noise {run.noise:.1%}), {measured} measured"
    )


def use(run: ScheduleRun, folder: Path) -> str:
    """Says how to use the fastest schedule, which ``write`` writes; empty if none works."""
    fastest = run.fastest
    if fastest is None:
        return ""
    changed = {name: value for name, value in asdict(fastest.draw).items() if name != "number"}
    given = [f"{k}={v}" for k, v in changed.items() if v != getattr(Draw(0), k)]
    draw = ", ".join([str(fastest.draw.number), *given])
    return (
        f"use it: {folder / SCHEDULE_FILE} in C++, in Python "
        f"hlorank.halide.adams2019.apply_schedule(pipeline, Draw({draw}))"
    )


def check_folder(folder: Path, pipeline: str) -> None:
    """Refuses a folder with the results of another search, which would be overwritten.

    Raises:
        JournalError: if it holds them; the message says what to do.
    """
    name = None
    with suppress(OSError, ValueError, AttributeError):
        name = read_json(folder / RESULTS_FILE).get("pipeline")
    is_other = name is not None and name != pipeline
    if is_other or (folder / JOURNAL).exists():
        raise JournalError(
            f"{folder} has the results of another search: name another folder with --out\n"
            f"({name if is_other else 'a search of another compiler'}, not {pipeline}; to begin "
            "anew in this folder, delete it)"
        )


def write(run: ScheduleRun, folder: Path) -> None:
    """Writes the fastest schedule as C++, and every schedule that was drawn."""
    fastest = run.fastest
    if fastest is not None and fastest.schedule is not None:
        comment = f"// {verdict(run)}\n// For a Halide::Pipeline named pipeline, and one thread.\n"
        write_atomically(folder / SCHEDULE_FILE, (comment + fastest.schedule.source).encode())
    content = {
        "name": run.name,
        "pipeline": run.pipeline,
        "feature_set": FEATURE_SET,
        "model": run.model,
        "unit": run.unit,
        "noise": run.noise,
        "repeats": run.repeats,
        "seconds": run.seconds,
        "schedules": [_row(candidate) for candidate in run.candidates],
    }
    write_json(folder / RESULTS_FILE, content)


def _row(candidate: Candidate) -> dict[str, Any]:
    source = None if candidate.schedule is None else candidate.schedule.source
    names = ("score", "nanoseconds", "compile_seconds", "problem")
    fields = {name: getattr(candidate, name) for name in names}
    return {"draw": asdict(candidate.draw), **fields, "source": source}
