"""Describes measurements: a Markdown table and a plot per collection."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hlorank_training.measuring.describe_kernels import describe_kernels
from hlorank_training.measuring.measured import Measured, MeasuredCollection, measured_collections
from hlorank_training.reports.plots import Panel, Scale, plot_families
from hlorank_training.reports.tables import markdown

TOTAL = "total"

_COLUMNS: dict[str, Callable[[Sequence[Measured]], str]] = {
    "graphs": lambda graphs: f"{len(graphs):,}",
    "configurations": lambda graphs: f"{sum(len(graph.runtimes) for graph in graphs):,}",
    "fastest, ms": lambda graphs: _range([graph.fastest for graph in graphs]),
    "p90/p10": lambda graphs: f"{np.median([graph.spread for graph in graphs]):.2f}",
    "default/best": lambda graphs: f"{np.median([g.default_over_best for g in graphs]):.2f}",
    "tau of passes": lambda graphs: f"{np.mean([graph.tau for graph in graphs]):.2f}",
    "noise": lambda graphs: f"{100 * np.median([graph.noise for graph in graphs]):.1f} %",
}
_LEGEND = (
    "Medians over graphs; taus are means. p90/p10: spread of a graph's run times; tau of passes: "
    "agreement of the orders of the two passes, which is about the upper bound for a model; noise: "
    "relative difference of their times."
)


def describe(data: Path, out: Path) -> str:
    """Returns Markdown on every collection in ``data`` and below, and plots each into ``out``.

    The lone kernels of fusions have a section of their own.
    """
    collections = measured_collections(data)
    if not collections:
        raise FileNotFoundError(f"no measurements in '{data}'")
    for collection in collections:
        _plot(collection, out / f"{collection.name.replace('/', '-')}.svg")
    fusions = sorted({path.parents[1] for path in data.rglob("kernels/*.json")})
    sections = [*map(_section, collections), _LEGEND, *map(describe_kernels, fusions)]
    return "\n\n".join(sections) + "\n"


def _section(collection: MeasuredCollection) -> str:
    table = markdown(["family", *_COLUMNS], _rows(collection), words=1)
    return f"### {collection.name}\n\n{table}\n\n{_origin(collection)}"


def _rows(collection: MeasuredCollection) -> list[list[str]]:
    groups = collection.families | {TOTAL: collection.graphs}
    return [
        [name, *(column(graphs) for column in _COLUMNS.values())] for name, graphs in groups.items()
    ]


def _range(values: Sequence[float]) -> str:
    low = f"{min(values):.3g}"
    high = f"{max(values):.3g}"
    return low if low == high else f"{low} to {high}"


def _origin(collection: MeasuredCollection) -> str:
    """Describes the provenance of a collection in one line."""
    source = collection.provenance
    records = [graph.record for graph in collection.graphs]
    return (
        f"{source['processor']}, threads a program: {source['threads']}. "
        f"{_protocol(source['protocol'])}. Run time: {source['label']}. {_load(records)}"
    )


def _protocol(protocol: dict[str, Any]) -> str:
    rounds = f"{protocol['rounds']}"
    if "most_rounds" in protocol:
        rounds += f" to {protocol['most_rounds']} rounds (enough for {protocol['seconds']} s)"
    else:
        rounds += " rounds"
    return (
        f"{protocol['warmups']} warm-ups, then two passes of {rounds}, "
        "each with every configuration once in random order"
    )


def _load(records: Sequence[dict[str, Any]]) -> str:
    keys = ("load_average_before", "load_average_after")
    loads = [record[key] for record in records for key in keys if key in record]
    return (
        f"Load average {np.median(loads):.2f} (median), {max(loads):.2f} (highest). "
        f"Rounds under load: {_sum(records, 'rounds_repeated_under_load')} measured again, "
        f"{_sum(records, 'rounds_kept_under_load')} kept."
    )


def _sum(records: Sequence[dict[str, Any]], key: str) -> str:
    """Sums a key over the records, of which older ones may lack the key."""
    values = [record[key] for record in records if key in record]
    if not values:
        return "an unknown number"
    return f"{'' if len(values) == len(records) else 'at least '}{sum(values):,}"


def _plot(collection: MeasuredCollection, path: Path) -> None:
    def panel(title: str, unit: str, quantity: Callable[[Measured], float], scale: Scale) -> Panel:
        groups = collection.families.items()
        values = {name: [quantity(graph) for graph in graphs] for name, graphs in groups}
        return Panel(title, unit, values, scale)

    ratio = "ratio of run times"
    percentiles = "90th over 10th percentile of run times"
    panels = [
        panel("Agreement of the two passes", "Kendall's tau", lambda g: g.tau, "linear"),
        panel("Default over best", ratio, lambda g: g.default_over_best, "log"),
        panel("Spread", percentiles, lambda g: g.spread, "log"),
    ]
    counts = f"{len(collection.graphs)} graphs of {len(collection.families)} families"
    plot_families(f"{collection.name}: {counts}. A dot is a graph, a bar the median", panels, path)
