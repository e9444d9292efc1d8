"""What IREE's programs gain: the model alone, with a few measurements, and many random ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from hlorank.iree.measure import measure_modules, measuring_worker
from hlorank.iree.runtime import ProgramSubject
from hlorank.measure.atomic_files import read_json, write_json
from hlorank.measure.rounds import Protocol
from hlorank.tune import Program, StablehloProgram, TileRun, TileSettings, tune_tiles
from hlorank.tune.dispatches.whole_program import program_modules
from rich.console import Console

from hlorank_training.judging.iree_programs import programs
from hlorank_training.reports.plots import plot_gains
from hlorank_training.reports.tables import markdown

PROTOCOL = Protocol(rounds=12, seconds=1.0, tries=60)
MEASUREMENTS = 5
"""Measured tiles per dispatch with the model."""
RANDOM = 100
"""Measured tiles per dispatch without it."""


@dataclass(frozen=True)
class Way:
    """A way to choose the tiles of a program."""

    name: str
    measurements: int
    """Per dispatch; 0 for the model alone."""
    with_model: bool = True


WAYS = (
    Way("model alone", 0),
    Way(f"model, {MEASUREMENTS} measured", MEASUREMENTS),
    Way(f"random, {RANDOM} measured", RANDOM, with_model=False),
)


@dataclass(frozen=True)
class Result:
    """Run times of one program, in nanoseconds, in the order of ``WAYS`` after the default's."""

    name: str
    times: Sequence[float]
    noise: float

    @property
    def ratios(self) -> np.ndarray:
        """Times divided by the default's."""
        return np.array(self.times[1:]) / self.times[0]


def study_iree(server: str, out: Path, model: str) -> str:
    """Tunes every program of the study in every way, and measures the results side by side.

    Continues a study that was stopped. Returns a table.
    """
    console, results, curves = Console(), [], {way.name: [] for way in WAYS[1:]}
    for program in programs():
        lowered = Program.from_function(program.function, *program.arguments, name=program.name)
        subject = StablehloProgram.from_program(lowered)
        runs = [_run(subject, way, server, out, model, console) for way in WAYS]
        results.append(_side_by_side(subject, runs, out / program.name / "study.json"))
        for way, run in zip(WAYS[1:], runs[1:], strict=True):
            curves[way.name].append(curve(run))
    plot_gains({name: _mean(lines) for name, lines in curves.items()}, out / "curves.svg")
    return _table(results)


def _run(
    subject: StablehloProgram, way: Way, server: str, out: Path, model: str, console: Console
) -> TileRun:
    folder = out / subject.name / way.name.replace(" ", "-").replace(",", "")
    console.print(f"{subject.name}, {way.name}")
    settings = TileSettings(measurements=max(way.measurements, 1), top_k=max(way.measurements, 1))
    return tune_tiles(
        subject,
        server if way.with_model else None,
        folder,
        settings,
        model=model,
        measure=way.measurements > 0,
        console=console,
    )


def _side_by_side(subject: StablehloProgram, runs: Sequence[TileRun], path: Path) -> Result:
    """Measures the program without and with every spec, in the same rounds."""
    if not path.exists():
        specs = [Path(run.spec) if run.spec else None for run in runs]
        modules = program_modules(subject, [None, *specs])
        with measuring_worker() as worker:
            measured = measure_modules(worker, ProgramSubject(subject.arguments), modules, PROTOCOL)
        noise = np.abs(measured.first - measured.second) / measured.nanoseconds
        times = measured.nanoseconds.tolist()
        # Without a spec, the program is the default.
        times = [t if i == 0 or specs[i - 1] else times[0] for i, t in enumerate(times)]
        write_json(path, {"times": times, "noise": float(np.median(noise))})
    content = read_json(path)
    return Result(subject.name, content["times"], content["noise"])


def curve(run: TileRun) -> np.ndarray:
    """Returns the time of all dispatches with the best tiles so far, divided by the default's.

    f64 [measurements + 1]: after 0, 1, ... measured tiles of every dispatch.
    """
    longest = max((len(kernel.outcomes) for kernel in run.kernels), default=0)
    total, spent = sum(kernel.seconds for kernel in run.kernels), np.zeros(longest + 1)
    for kernel in run.kernels:
        ratios = [1.0, *(outcome.ratio for outcome in kernel.outcomes)]
        best = np.minimum.accumulate(np.array(ratios))
        spent += kernel.seconds * np.pad(best, (0, longest + 1 - len(best)), "edge")
    return spent / total if total else np.ones(longest + 1)


def _mean(lines: Sequence[np.ndarray]) -> np.ndarray:
    """Returns the geometric mean of curves of several lengths."""
    longest = max(map(len, lines))
    padded = [np.pad(line, (0, longest - len(line)), "edge") for line in lines]
    return np.exp(np.log(padded).mean(0))


def _table(results: Sequence[Result]) -> str:
    head = ["program", "IREE's tiles, ms", *(way.name for way in WAYS), "noise"]
    rows = [
        [r.name, f"{r.times[0] / 1e6:.2f}", *(f"{x:.3f}" for x in r.ratios), f"{r.noise:.1%}"]
        for r in results
    ]
    means = np.exp(np.log([result.ratios for result in results]).mean(0))
    rows.append(["geometric mean", "", *(f"{x:.3f}" for x in means), ""])
    return markdown(head, rows)
