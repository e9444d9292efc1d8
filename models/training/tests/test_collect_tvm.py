"""Random tasks of TVM, really built and run."""

import numpy as np
import pytest

pytest.importorskip("tvm", reason="tvm is not installed")

from hlorank.tuners.tvm_trace import COLUMNS, FEATURE_SET
from hlorank_tune.measure.atomic_files import read_json

from hlorank_training.measuring.tvm.candidates import tasks_of
from hlorank_training.measuring.tvm.collect import (
    CandidateLimits,
    Protocol,
    collect_tvm,
)
from hlorank_training.measuring.tvm.programs import random_program


def test_programs_of_different_seeds_have_different_tasks():
    tasks = [set(tasks_of(random_program(seed))) for seed in range(4)]
    assert all(len(each) >= 6 for each in tasks)
    assert len(set.union(*tasks)) > len(tasks[0])


def test_a_task_becomes_a_graph_of_one_node_and_is_not_measured_again(tmp_path):
    limits = CandidateLimits(candidates=4, least=2)
    collect_tvm(tmp_path, 0.0, Protocol(), limits)  # the first task alone
    (path,) = tmp_path.glob("*.npz")
    with np.load(path) as arrays:
        assert arrays["feature_set"].tobytes().decode() == FEATURE_SET
        configs = len(arrays["config_runtime"])
        assert arrays["config_features"].shape == (configs, 1, len(COLUMNS))
        assert (arrays["config_runtime"] > 0).all()
    record = read_json(path.with_suffix(".json"))
    assert record["configurations"] == configs >= 2
    written = path.stat().st_mtime_ns
    collect_tvm(tmp_path, 0.0, Protocol(), limits)
    assert path.stat().st_mtime_ns == written
