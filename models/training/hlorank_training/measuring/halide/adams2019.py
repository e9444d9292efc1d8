"""Schedules of the Adams2019 autoscheduler, with its features of them.

The autoscheduler is a plugin in Halide's wheel. It returns the features of every stage that is not
an input: 39 of the schedule, and 287 that do not depend on it. It only prints which stage reads
which, to the C library's standard error.
"""

import os
import re
import tempfile
from pathlib import Path

import halide as hl
import numpy as np

from hlorank_training.measuring.halide.features import CONFIG_FEATURES, NODE_FEATURES
from hlorank_training.measuring.halide.pipeline import Pipeline
from hlorank_training.measuring.halide.plugin import load_plugin
from hlorank_training.measuring.halide.schedule import Draw, Schedule
from hlorank_training.measuring.halide.stages import stage_graph
from hlorank_training.measuring.halide.standard_error import printed
from hlorank_training.measuring.halide.weights import noisy_weights


def apply_schedule(pipeline: Pipeline, draw: Draw) -> Schedule:
    """Schedules a pipeline for one thread.

    Raises:
        halide.HalideError: if the autoscheduler finds no schedule.
    """
    load_plugin()
    os.environ["HL_NUM_PASSES"] = "1"
    with tempfile.TemporaryDirectory() as folder, printed() as text:
        weights = Path(folder, "adams2019.weights")
        weights.write_bytes(noisy_weights(draw))
        parameters = {
            "parallelism": 1,
            "beam_size": draw.beam,
            "random_dropout": draw.keep,
            "random_dropout_seed": draw.number,
            "weights_path": str(weights),
        }
        autoscheduler = hl.AutoschedulerParams("Adams2019", parameters)
        found = pipeline.pipeline.apply_autoscheduler(hl.get_host_target(), autoscheduler)
    rows = np.frombuffer(bytes(found.featurization), "<f4")
    rows = rows.reshape(-1, len(CONFIG_FEATURES) + len(NODE_FEATURES))
    stages, edges = stage_graph(text())
    if len(stages) != len(rows):
        raise RuntimeError(f"{len(rows)} stages have features, but {len(stages)} were printed")
    costs = re.findall(r"^Best cost: (\S+)$", text(), re.MULTILINE)
    config, node = np.split(rows, [len(CONFIG_FEATURES)], axis=1)
    return Schedule(stages, edges, node, config, float(costs[-1]), found.schedule_source)
