"""Draws schedules of a blur with Halide's autoscheduler, and ranks them by a server.

python rank_schedules.py [ADDRESS]
"""

import sys

import halide as hl
import numpy as np
from hlorank import Client, ConfigFeatures, Graph

from hlorank_training.measuring.halide.adams2019 import Draw, Schedule, apply_schedule
from hlorank_training.measuring.halide.features import FEATURE_SET

SIZE = 1024
DRAWS = [Draw(0), *(Draw(number, noise=0.8, keep=50) for number in range(1, 24))]
"""The autoscheduler's own choice, and others with noise on its cost model and dropout."""


def blur() -> hl.Pipeline:
    """Returns a new pipeline, since a schedule changes the functions that it is applied to."""
    x, y = hl.Var("x"), hl.Var("y")
    image = hl.ImageParam(hl.Float(32), 2, "image")
    image.set_estimates([(0, SIZE), (0, SIZE)])
    padded = hl.BoundaryConditions.repeat_edge(image, [(0, SIZE), (0, SIZE)])
    rows, columns, sharp = hl.Func("rows"), hl.Func("columns"), hl.Func("sharp")
    rows[x, y] = (padded[x - 1, y] + 2.0 * padded[x, y] + padded[x + 1, y]) / 4.0
    columns[x, y] = (rows[x, y - 1] + 2.0 * rows[x, y] + rows[x, y + 1]) / 4.0
    sharp[x, y] = hl.sqrt(padded[x, y] * padded[x, y] + columns[x, y] * columns[x, y])
    sharp.set_estimates([(0, SIZE), (0, SIZE)])
    return hl.Pipeline(sharp)


def main() -> None:
    """Prints the schedules that the model puts first, and the fastest one's source."""
    drawn: dict[str, tuple[Draw, Schedule]] = {}
    for draw in DRAWS:
        schedule = apply_schedule(blur(), draw)
        drawn.setdefault(schedule.digest, (draw, schedule))
    schedules = [schedule for _, schedule in drawn.values()]
    # The stages and what reads what are those of the pipeline, whatever its schedule.
    graph = Graph.from_feature_set(FEATURE_SET, schedules[0].node_features, schedules[0].edges)
    columns = ConfigFeatures(np.stack([schedule.config_features for schedule in schedules]))
    with Client(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:7070") as client:
        ranking = client.rank(graph, columns, with_scores=True)
    print(f"{len(schedules)} schedules of {len(schedules[0].stages)} stages, by {ranking.model}")
    order = np.argsort(ranking.scores, kind="stable")
    for number in order[:5]:
        draw, schedule = list(drawn.values())[number]
        milliseconds = ranking.scores[number] * 1e3
        print(f"{milliseconds:8.3f} ms predicted for {draw}")
    print(f"{ranking.scores[0] * 1e3:8.3f} ms predicted for the autoscheduler's own choice")
    print(schedules[order[0]].source)


if __name__ == "__main__":
    main()
