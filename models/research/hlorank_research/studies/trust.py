"""How true the tau that a server expects is, on lists that its models did not learn from."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from hlorank import Client
from measured import MeasuredGraph, read_graphs
from tabulate import tabulate

from hlorank_training.data.prepare import MIN_AGREEMENT, split_sources
from hlorank_training.data.sources import Source, sources
from hlorank_training.measuring.provenance import targets_of
from hlorank_training.metrics.ranking import kendall_tau

LOW, HIGH = 0.3, 0.5
"""The study counts how often a list below the first is trusted less than one above the second."""
OTHER_TILES = ("tile", "tile-halide", "tile-triton-h100")
"""Collections of tiles of other compilers than the model's."""
_MOST_LISTS = 400
"""Lists of a group, in the order of the hashes of their names."""


@dataclass(frozen=True)
class Trusted:
    """What a server expected of a list, and what came of it."""

    group: str
    tau: float
    expected: float
    named: float
    """What it expected when the call named the target."""
    low: float
    high: float


@dataclass(frozen=True)
class Group:
    """Files of one sort, and the target that they were measured on."""

    name: str
    task: str
    files: Sequence[Path]
    target: str


def study_trust(data: Path, tpugraphs: Sequence[Path], server: str, hlorank: Path) -> str:
    """Returns a table of the groups of lists, and how well trust tells good from bad ones."""
    found = [one for group in _groups(data, tpugraphs, hlorank) for one in _judge(group, server)]
    return f"{_table(found)}\n\n{_told_apart(found)}"


def _groups(data: Path, tpugraphs: Sequence[Path], hlorank: Path) -> Iterator[Group]:
    for task, folder in (("tile", "tile-iree"), ("layout", "layout")):
        usable = [one for one in sources(data / folder, hlorank) if _agrees(one)]
        split = split_sources(task, usable)
        target = _target([one.file for one in usable])
        for name, is_unseen in (("known families", False), ("unseen families", True)):
            files = [
                one.file
                for one in usable
                if one.name in split.test and (one.name in split.unseen_family) == is_unseen
            ]
            yield Group(f"{task}s, {name}", task, files, target)
    for folder in OTHER_TILES:
        files = [one.file for one in sources(data / folder, hlorank)]
        target = _target(files)
        compiler = target.split(", ")[1]
        yield Group(f"tiles of {compiler}", "tile", _some(files), target)
    if tpugraphs:
        yield Group("layouts of a TPU", "layout", tpugraphs, "TPU v3, XLA")


def _agrees(source: Source) -> bool:
    return source.noise_ceiling is None or source.noise_ceiling >= MIN_AGREEMENT


def _target(files: Sequence[Path]) -> str:
    """Returns the text of the target that files were measured on."""
    target = targets_of(files)[0]
    compiler = f"{target['compiler']} {target['version']}"
    return ", ".join([target["hardware"], compiler, *target["flags"]])


def _some(files: Sequence[Path]) -> Sequence[Path]:
    step = max(len(files) // _MOST_LISTS, 1)
    return files[::step]


def _judge(group: Group, server: str) -> Iterator[Trusted]:
    with Client(server, timeout=600) as unnamed, Client(server, target=group.target) as named:
        for graph in (one for file in group.files for one in read_graphs(file)):
            if graph.configurations is not None and len(set(graph.run_times)) > 1:
                yield _judged(group, graph, unnamed, named)


def _judged(group: Group, graph: MeasuredGraph, unnamed: Client, named: Client) -> Trusted:
    ranking = unnamed.rank(graph.graph, graph.configurations, with_scores=True)
    trust = ranking.confidence
    on_target = named.rank(graph.graph, graph.configurations, top_k=1).confidence
    return Trusted(
        group=group.name,
        tau=kendall_tau(np.asarray(ranking.scores), graph.run_times),
        expected=trust.expected_tau,
        named=on_target.expected_tau,
        low=trust.expected_tau_low,
        high=trust.expected_tau_high,
    )


def _table(found: Sequence[Trusted]) -> str:
    groups = dict.fromkeys(one.group for one in found)
    rows = [_row(name, [one for one in found if one.group == name]) for name in groups]
    head = ("", "lists", "tau", "expected", "error", "in interval", "expected, named", "error")
    return tabulate([*rows, _row("all groups", found)], head, "github", floatfmt=".2f")


def _row(name: str, found: Sequence[Trusted]) -> list[object]:
    tau = np.array([one.tau for one in found])
    expected = np.array([one.expected for one in found])
    named = np.array([one.named for one in found])
    held = np.mean([one.low <= one.tau <= one.high for one in found])
    errors = [float(np.abs(tau - each).mean()) for each in (expected, named)]
    return [
        name,
        len(found),
        float(tau.mean()),
        float(expected.mean()),
        errors[0],
        float(held),
        float(named.mean()),
        errors[1],
    ]


def _told_apart(found: Sequence[Trusted]) -> str:
    areas = [_area(found, [getattr(one, name) for one in found]) for name in ("expected", "named")]
    return (
        f"A list with a tau above {HIGH} was expected to be ranked better than one below {LOW} in "
        f"{areas[0]:.3f} of the pairs; {areas[1]:.3f} if the call names the target."
    )


def _area(found: Sequence[Trusted], expected: Sequence[float]) -> float:
    """Returns the area under the curve."""
    pairs = list(zip(found, expected, strict=True))
    low = np.array([value for one, value in pairs if one.tau < LOW])
    high = np.array([value for one, value in pairs if one.tau > HIGH])
    above = (low[:, None] < high[None]).mean()
    return float(above + (low[:, None] == high[None]).mean() / 2)
