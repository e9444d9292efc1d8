"""What fusions gain: with a server's model, and by measurements alone in a longer time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from hlorank_tune import Run, Settings
from hlorank_tune.measure.atomic_files import read_json, write_json
from hlorank_tune.measure.rounds import Protocol
from hlorank_tune.xla import FusionProgram, side_by_side, tune

from hlorank_training.measuring.fusion_zoo import fusion_programs
from hlorank_training.measuring.zoo import Network
from hlorank_training.reports.tables import markdown

PROTOCOL = Protocol(warmups=1, rounds=12, seconds=1.0, tries=2)
_UNLIMITED = 10_000
"""Measurements of the searches, which are limited by time."""


WITH_MODEL = "with the model"
WITHOUT_MODEL = "without"
WAYS = (WITH_MODEL, WITHOUT_MODEL)


@dataclass(frozen=True)
class Result:
    """Run times of one program in nanoseconds: its own, the compiler's fusions, and every way's."""

    name: str
    times: Sequence[float]
    measured: Sequence[int]
    """Number of measurements of each way."""
    noise: float

    @property
    def ratios(self) -> np.ndarray:
        """Times divided by the program's own."""
        return np.array(self.times[1:]) / self.times[0]


def study_fusion(
    names: Sequence[str], server: str, out: Path, minutes: float, minutes_without: float
) -> str:
    """Tunes programs with and without the model, and measures the results side by side.

    Continues a study that was stopped. Returns a table.

    Raises:
        KeyError: if a program does not exist.
    """
    known = {network.name: network for network in fusion_programs()}
    limits = {WITH_MODEL: minutes * 60, WITHOUT_MODEL: minutes_without * 60}
    return _table([_result(known[name], server, out / name, limits) for name in names])


def _result(network: Network, server: str, out: Path, limits: Mapping[str, float]) -> Result:
    arguments = network.arguments()
    program = FusionProgram.from_function(network.function(), *arguments, name=network.name)
    runs = []
    for way, seconds in limits.items():
        settings = Settings("annealing", measurements=_UNLIMITED, seconds=seconds)
        runs.append(
            tune(program, server if way == WITH_MODEL else None, _folder(out, way), settings)
        )
    return _side_by_side(program, runs, out)


def _folder(out: Path, way: str) -> Path:
    return out / way.replace(" ", "-")


def _side_by_side(program: FusionProgram, runs: Sequence[Run], out: Path) -> Result:
    """Measures the program, the compiler's fusions and every winner in the same rounds."""
    path = out / "study.json"
    if not path.exists():
        folders = {way: _folder(out, way) for way in WAYS}
        outcomes = side_by_side(program, folders, protocol=PROTOCOL)
        times = [outcome.nanoseconds or np.inf for outcome in outcomes.values()]
        write_json(path, {"times": times, "noise": outcomes["program"].noise})
    content = read_json(path)
    counts = [len(run.measurements) for run in runs]
    return Result(program.name, content["times"], counts, content["noise"])


def _table(results: Sequence[Result]) -> str:
    head = ["program", "its time, ms", "compiler's fusions"]
    head += [text for way in WAYS for text in (way, "measured")]
    rows = []
    for result in results:
        own, *ratios = (f"{ratio:.3f}" for ratio in result.ratios)
        counted = zip(ratios, map(str, result.measured), strict=True)
        cells = [cell for pair in counted for cell in pair]
        rows.append(
            [result.name, f"{result.times[0] / 1e6:.3f}", own, *cells, f"{result.noise:.1%}"]
        )
    own, *means = np.exp(np.log([result.ratios for result in results]).mean(0))
    cells = [cell for mean in means for cell in (f"{mean:.3f}", "")]
    rows.append(["geometric mean", "", f"{own:.3f}", *cells, ""])
    return markdown([*head, "noise"], rows)
