"""What IREE's programs gain: the model alone, with a few measurements, and many random ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from hlorank_tune import Run, Settings, search
from hlorank_tune.iree import SPEC_FILE, IreeCompiler, StablehloProgram, program_modules
from hlorank_tune.iree.measure import measure_modules, measuring_worker
from hlorank_tune.iree.runtime import ProgramSubject
from hlorank_tune.measure.atomic_files import read_json, write_json
from hlorank_tune.measure.rounds import Protocol
from hlorank_tune.xla import Program
from rich.console import Console

from hlorank_research.reports.plots import plot_gains
from hlorank_research.studies.iree_programs import programs
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
    console = Console()
    results = []
    curves = {way.name: [] for way in WAYS[1:]}
    for program in programs():
        lowered = Program.from_function(program.function, *program.arguments, name=program.name)
        subject = StablehloProgram.from_program(lowered)
        runs = [_run(subject, way, server, out, model, console) for way in WAYS]
        specs = [_folder(out, subject, way) / SPEC_FILE for way in WAYS]
        results.append(_side_by_side(subject, specs, out / program.name / "study.json"))
        for way, run in zip(WAYS[1:], runs[1:], strict=True):
            curves[way.name].append(curve(run))
    plot_gains({name: _mean(lines) for name, lines in curves.items()}, out / "curves.svg")
    return _table(results)


def _run(
    subject: StablehloProgram, way: Way, server: str, out: Path, model: str, console: Console
) -> Run:
    console.print(f"{subject.name}, {way.name}")
    count = max(way.measurements, 1)
    settings = Settings(IreeCompiler.strategies[0], measurements=count, top_k=count)
    return search(
        IreeCompiler(subject),
        server if way.with_model else None,
        _folder(out, subject, way),
        settings,
        model=model,
        measure=way.measurements > 0,
    )


def _folder(out: Path, subject: StablehloProgram, way: Way) -> Path:
    return out / subject.name / way.name.replace(" ", "-").replace(",", "")


def _side_by_side(subject: StablehloProgram, paths: Sequence[Path], path: Path) -> Result:
    """Measures the program without and with every spec, in the same rounds."""
    if not path.exists():
        specs = [spec if spec.exists() else None for spec in paths]
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


def curve(run: Run) -> np.ndarray:
    """Returns the time of all dispatches with the best tiles so far, divided by the default's.

    f64 [measurements + 1]: after 0, 1, ... measured tiles of every dispatch.
    """
    measured = {name: [m for m in run.of(name) if m.candidate] for name in run.subjects}
    longest = max(map(len, measured.values()), default=0)
    spent = np.zeros(longest + 1)
    for name, tiles in measured.items():
        first = run.of(name)[0]
        seconds = first.calls * (first.outcome.reference or 0)
        ratios = np.array([1.0, *(tile.outcome.ratio for tile in tiles)])
        best = np.minimum.accumulate(ratios)
        spent += seconds * np.pad(best, (0, longest + 1 - len(best)), "edge")
    return spent / spent[0] if longest and spent[0] else np.ones(longest + 1)


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
