"""What Halide's pipelines gain if only the schedules that a model ranks first are measured."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
from hlorank import Client
from hlorank.halide.schedule import Schedule
from hlorank.measure.atomic_files import read_json, write_json
from hlorank.tune.halide import HalideCompiler, rank_schedules

from hlorank_training.data.feature_graphs import FeatureGraph, read_feature_graphs
from hlorank_training.reports.tables import markdown

MEASUREMENTS = HalideCompiler.settings().measurements


@dataclass(frozen=True)
class Result:
    """One pipeline, whose first schedule is the greedy one.

    Run times are multiples of the greedy schedule's. The fastest of several schedules is chosen by
    one pass of measurements, and its run time is that of the other pass.
    """

    name: str
    stages: int
    schedules: int
    greedy_milliseconds: float
    noise: float
    first: float
    """The schedule that the model ranks first."""
    chosen: float
    """The fastest of the greedy one and the model's first five."""
    random: float
    """The fastest of the greedy one and five random ones, in expectation."""
    best: float
    """The fastest of all."""
    draw_seconds: float
    """To draw the distinct schedules."""
    rank_seconds: float
    """That the client waits for the ranking."""
    chosen_seconds: float
    """To compile and measure the greedy one and the model's first five."""
    all_seconds: float
    """To compile and measure all."""


def study_halide(
    data: Path, pipelines: Sequence[str], server: str, out: Path, model: str | None
) -> str:
    """Ranks measured schedules of pipelines that the model has not seen.

    Writes the results into the file ``out``, and returns a table.

    Raises:
        ValueError: if the folder has no such pipelines.
    """
    graphs = {graph.name: graph for graph in read_feature_graphs(data)}
    if missing := sorted(set(pipelines).difference(graphs)):
        raise ValueError(f"'{data}' has no measured {', '.join(missing)}")
    with Client(server) as client:
        results = [
            _result(graphs[name], read_json(data / f"{name}.json"), client, model)
            for name in pipelines
        ]
    write_json(out, [asdict(result) for result in results])
    return table(results)


def _result(
    graph: FeatureGraph, record: dict[str, Any], client: Client, model: str | None
) -> Result:
    schedules = [
        Schedule(tuple(record["stages"]), graph.edges, graph.node_features, config, 0.0, "")
        for config in graph.config_features
    ]
    begin = monotonic()
    ranking = rank_schedules(client, schedules, model)
    rank_seconds = monotonic() - begin
    first_pass, second_pass = (times / times[0] for times in graph.passes)
    few = sorted({0, *ranking.best[:MEASUREMENTS].tolist()})
    compiling = np.array(record["compile_seconds"])
    running = graph.nanoseconds / 1e9
    spent = compiling + running * sum(record["rounds"])
    return Result(
        name=graph.name,
        stages=len(graph.node_features),
        schedules=len(schedules),
        greedy_milliseconds=float(running[0] * 1e3),
        noise=record["noise_between_passes"],
        first=second_pass[ranking.best[0]],
        chosen=second_pass[min(few, key=lambda number: first_pass[number])],
        random=expected_fastest(first_pass, second_pass, MEASUREMENTS),
        best=second_pass[first_pass.argmin()],
        draw_seconds=sum(record["search_seconds"]),
        rank_seconds=rank_seconds,
        chosen_seconds=float(spent[few].sum()),
        all_seconds=float(spent.sum()),
    )


def expected_fastest(first_pass: np.ndarray, second_pass: np.ndarray, count: int) -> float:
    """Returns the mean time of the fastest of schedule 0 and ``count`` random other ones.

    The fastest is chosen by the first pass, and its time is that of the second.
    """
    others = len(first_pass) - 1
    remaining = 1.0
    expected = 0.0
    for place, number in enumerate(np.argsort(first_pass, kind="stable")):
        if number == 0:
            break
        # That a choice without any faster schedule has this one.
        chance = min(1.0, count / (others - place))
        expected += remaining * chance * second_pass[number]
        remaining *= 1 - chance
    return float(expected + remaining * second_pass[0])


_RATIOS = ("first", "chosen", "random", "best")
_SECONDS = ("draw_seconds", "rank_seconds", "chosen_seconds", "all_seconds")


def table(results: Sequence[Result]) -> str:
    """Returns the table of the study, with geometric means of ratios and totals of seconds."""
    head = ["pipeline", "stages", "schedules", "greedy", "noise", "model's first"]
    head += [f"model, {MEASUREMENTS} measured", f"random, {MEASUREMENTS} measured", "all measured"]
    head += ["draw", "rank", f"{MEASUREMENTS} and greedy", "all"]
    rows = [
        [
            one.name,
            str(one.stages),
            str(one.schedules),
            f"{one.greedy_milliseconds:.3g} ms",
            f"{one.noise:.1%}",
            *(f"{getattr(one, key):.3f}" for key in _RATIOS),
            *(_seconds(getattr(one, key)) for key in _SECONDS),
        ]
        for one in results
    ]
    ratios = np.array([[getattr(one, key) for key in _RATIOS] for one in results])
    seconds = np.array([[getattr(one, key) for key in _SECONDS] for one in results])
    means = [f"{mean:.3f}" for mean in np.exp(np.log(ratios).mean(0))]
    totals = [_seconds(total) for total in seconds.sum(0)]
    rows.append(["geometric mean, total", *[""] * 4, *means, *totals])
    return markdown(head, rows)


def _seconds(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.2g} s"
