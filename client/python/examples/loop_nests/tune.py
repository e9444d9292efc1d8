"""What ranks the schedules of ``compiler.py`` with hlorank: features, data, and the client."""

import argparse
import json
from math import ceil, prod
from pathlib import Path

import numpy as np
from compiler import INPUTS, KINDS, Schedule, Stage, measure, program, schedules

from hlorank import Client, ConfigFeatures, Graph, Ranking

SET = "loop-nests-1"
NODE_FEATURES = ("size", "iterations", *KINDS)
"""What a stage is."""
CONFIG_FEATURES = (
    *("iterations", "starts of the innermost loop", "steps", "unrolled steps"),
    *("strided accesses", "sums in one element", "elements of a tile"),
    *("lines of one loop", "lines of two loops", "lines of all loops"),
    *(f"iterations with {loop} innermost" for loop in "ijkl"),
)
"""What a schedule makes a stage do: amounts of work, with which time grows."""
VECTOR, LINE = 8, 16
"""Numbers in a vector and in a cache line."""
UNSEEN = 1000
"""The first of the programs that are not measured for training."""


def node_features(stages: list[Stage]) -> np.ndarray:
    """Returns f32 [stages, NODE_FEATURES]."""
    sizes = [[stage.size, prod(stage.extents.values())] for stage in stages]
    kinds = [[stage.kind == kind for kind in KINDS] for stage in stages]
    return np.concatenate([sizes, kinds], axis=1).astype(np.float32)


def edges(stages: list[Stage]) -> np.ndarray:
    """Returns pairs of consumer and producer among the stages: i64 [edges, 2]."""
    reads = [(number, read) for number, stage in enumerate(stages) for read in stage.inputs]
    pairs = [(consumer, read - INPUTS) for consumer, read in reads if read >= INPUTS]
    return np.array(pairs, np.int64).reshape(-1, 2)


def config_features(stages: list[Stage], configs: list[list[Schedule]]) -> np.ndarray:
    """Returns f32 [configs, stages, CONFIG_FEATURES]."""
    rows = [[_work(*pair) for pair in zip(stages, chosen, strict=True)] for chosen in configs]
    return np.array(rows, np.float32)


def _work(stage: Stage, schedule: Schedule) -> list[float]:
    length = {loop: min(n, schedule.tiles.get(loop, n)) for loop, n in stage.extents.items()}
    iterations, innermost = prod(stage.extents.values()), schedule.order[-1]

    def lines(depth: int) -> float:
        """Cache lines that the innermost loops touch, times how often these loops run."""
        inside = {loop: length[loop] for loop in schedule.order[-depth:]}
        spans = [
            [1 + sum(inside.get(loop, 1) - 1 for loop in axis) for axis in access]
            for access in stage.accesses
        ]
        touched = sum(rows * ceil(columns / LINE) for rows, columns in spans)
        return iterations / prod(inside.values()) * touched

    vector, starts = _vector_loop(stage, schedule), iterations / length[innermost]
    steps = iterations
    if vector:
        steps = iterations / length[vector] * sum(divmod(length[vector], VECTOR))
    strided = sum(innermost in row for row, _ in stage.accesses)
    is_sum = not vector and not any(innermost in axis for axis in stage.accesses[0])
    return [
        iterations,
        starts,
        steps,
        steps / schedule.unroll,
        iterations * strided,
        steps * is_sum,
        prod(length.values()),
        *(lines(depth) for depth in (1, 2, len(length))),
        *(iterations * (loop == innermost) for loop in "ijkl"),
    ]


def _vector_loop(stage: Stage, schedule: Schedule) -> str:
    """Returns the loop that the C compiler vectorizes; empty if there is none.

    It is the innermost one, or the next one if that is not tiled, and has the columns of the
    output and the rows of nothing that the innermost loop reads. Short loops are unrolled before.
    """
    order = schedule.order
    while stage.extents[order[-1]] <= schedule.unroll:
        order = order[:-1]
    inside = [access for access in stage.accesses if order[-1] in "".join(access)]
    candidates = order[-1] if order[-1] in schedule.tiles else order[:-3:-1]
    output = stage.accesses[0]
    fits = (v for v in candidates if v in output[1] and not any(v in row for row, _ in inside))
    return next(fits, "")


def collect(folder: Path, programs: int, count: int) -> None:
    """Measures schedules of programs, and writes the files that training reads."""
    folder.mkdir(parents=True, exist_ok=True)
    columns = {"node_features": NODE_FEATURES, "config_features": CONFIG_FEATURES}
    (folder / "feature_set.json").write_text(json.dumps({"name": SET, **columns}))
    for seed in range(programs):
        stages = program(seed)
        configs = schedules(stages, count, seed)
        passes = measure(stages, configs)
        np.savez_compressed(
            folder / f"p{seed:03}.npz",
            feature_set=np.frombuffer(SET.encode(), np.uint8),
            node_features=node_features(stages),
            edge_index=edges(stages),
            config_features=config_features(stages, configs),
            config_runtime=passes.min(axis=0),
        )
        record = dict(zip(("first_pass", "second_pass"), passes.tolist(), strict=True))
        (folder / f"p{seed:03}.json").write_text(json.dumps(record))
        print(f"p{seed:03}: {len(stages)} stages, {passes.min() / 1e6:.3f} ms", flush=True)


def rank(client: Client, stages: list[Stage], configs: list[list[Schedule]]) -> Ranking:
    """Asks the server for predicted seconds, and the order of the configurations by them."""
    graph = Graph.from_feature_set(SET, node_features(stages), edges(stages))
    return client.rank(graph, ConfigFeatures(config_features(stages, configs)), with_scores=True)


def optimize(client: Client, seed: int, count: int) -> None:
    """Ranks schedules of an unseen program, and measures the first five and the plain one."""
    stages = program(UNSEEN + seed)
    configs = schedules(stages, count, seed)
    ranking = rank(client, stages, configs)
    first = ranking.best[:5]
    plain, *times = measure(stages, [configs[0], *(configs[number] for number in first)]).min(0)
    fastest = int(np.argmin(times))
    print(f"{plain / 1e6:.3f} ms without optimization, {times[fastest] / 1e6:.3f} ms with", end=" ")
    print(f"schedule {first[fastest]} of {count}, after 5 measurements:")
    for stage, schedule in zip(stages, configs[first[fastest]], strict=True):
        print(f"  {stage.kind}: order {schedule.order}, tiles {schedule.tiles}, {schedule.unroll}x")


def main() -> None:
    """Runs a command."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    measuring = commands.add_parser("measure", help="measure programs for training")
    measuring.add_argument("folder", type=Path)
    measuring.add_argument("--programs", type=int, default=96)
    optimizing = commands.add_parser("optimize", help="find a fast schedule of a program")
    optimizing.add_argument("seed", type=int)
    for command, count in ((measuring, 32), (optimizing, 2000)):
        command.add_argument("--schedules", type=int, default=count, help="(default: %(default)s)")
    optimizing.add_argument("--endpoint", default="127.0.0.1:7070", help="(default: %(default)s)")
    given = parser.parse_args()
    if given.command == "measure":
        return collect(given.folder, given.programs, given.schedules)
    with Client(given.endpoint) as client:
        optimize(client, given.seed, given.schedules)


if __name__ == "__main__":
    main()
