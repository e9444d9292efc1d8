"""Writes small held-out measurements for the demo and the tests."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from hlorank.measure.atomic_files import write_atomically
from hlorank.measure.schema import ModuleTuningData, TuningData

from hlorank_training.data.prepare import Prepared
from hlorank_training.measuring.measured import spread


@dataclass(frozen=True)
class FixtureRule:
    """Numbers of held-out graphs that become fixtures; the choice does not depend on scores."""

    layouts: int = 2
    """Held-out graphs with the largest spread of run times (90th over 10th percentile)."""
    tiles: int = 5
    """First held-out kernels of different families."""


def write_fixtures(task: str, prepared: Prepared, folder: Path, rule: FixtureRule) -> list[Path]:
    """Writes the fixtures of a task and returns the files."""
    return _layouts(prepared, folder, rule) if task == "layout" else _tiles(prepared, folder, rule)


def _layouts(prepared: Prepared, folder: Path, rule: FixtureRule) -> list[Path]:
    names = sorted(prepared.split.test, key=lambda name: -_spread(prepared.sources[name].file))
    written = []
    for name in names[: rule.layouts]:
        written.append(folder / f"layout_{name.replace('/', '_')}.pb")
        write_atomically(written[-1], prepared.sources[name].file.read_bytes())
    return written


def _spread(file: Path) -> float:
    data = ModuleTuningData.FromString(file.read_bytes())
    return spread(np.array([run.profile.compute_time_ns for run in data.runs]))


def _tiles(prepared: Prepared, folder: Path, rule: FixtureRule) -> list[Path]:
    data = TuningData()
    for name in _one_per_family(prepared)[: rule.tiles]:
        file = prepared.sources[name].file
        data.modules.extend(TuningData.FromString(file.read_bytes()).modules)
    two_levels = data.modules[0].runs[0].op_config.tile_size_config.input_bounds
    path = folder / ("tile_dispatches.pb" if two_levels else "tile_kernels.pb")
    write_atomically(path, data.SerializeToString())
    return [path]


def write_pool(prepared: Prepared, out: Path, known: bool) -> None:
    """Writes the kernels of the families that training left out, or of all families if no shipped
    model knows the hardware."""
    split = prepared.split
    names = split.unseen_family if known else sorted(prepared.sources)
    data = TuningData()
    for name in names:
        file = prepared.sources[name].file
        data.modules.extend(TuningData.FromString(file.read_bytes()).modules)
    write_atomically(out, data.SerializeToString())


def _one_per_family(prepared: Prepared) -> Sequence[str]:
    first: dict[str, str] = {}
    for name in prepared.split.test:
        first.setdefault(prepared.sources[name].family, name)
    return list(first.values())
