"""Measures random candidates of TVM's tasks. Resumable."""

import tempfile
import time
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np
import tvm
from hlorank.tuners.tvm_trace import COLUMNS, FEATURE_SET, columns_of, kind_of
from hlorank_tune.measure.atomic_files import write_json
from hlorank_tune.measure.rounds import Timing
from tqdm import tqdm

from hlorank_training.measuring.provenance import Collection, record, write_feature_graph
from hlorank_training.measuring.tvm.candidates import measured_candidates, tasks_of
from hlorank_training.measuring.tvm.programs import random_program


@dataclass(frozen=True)
class Protocol:
    """How a candidate is measured."""

    passes: int = 2
    repeats: int = 3
    """Stretches of about 2 ms of a pass, whose median counts."""
    clock: str = "thread"
    """Processor time, over how slow a fixed computation is at that moment."""


@dataclass(frozen=True)
class CandidateLimits:
    """What is drawn of a task."""

    candidates: int = 24
    least: int = 8
    """Tasks with fewer that differ in a column are left out."""


def collect_tvm(
    folder: Path,
    minutes: float,
    protocol: Protocol = Protocol(),
    limits: CandidateLimits = CandidateLimits(),
) -> None:
    """Measures tasks until the time limit; skips what files have."""
    packages = ("apache-tvm",)
    collection = Collection(
        folder, "feature-set", protocol, limits, "tvm llvm", packages, suffix=".npz"
    )
    columns = {"name": FEATURE_SET, "node_features": [], "config_features": COLUMNS}
    write_json(folder / "feature_set.json", columns)
    end = time.monotonic() + 60 * minutes
    with tqdm(desc="tasks") as progress:
        for seed in count():
            tasks = tasks_of(random_program(seed))
            for number, (family, module) in enumerate(sorted(tasks.items())):
                name = f"t{seed:04d}{number:02d}"
                progress.set_postfix_str(f"{name} {family}")
                if not collection.is_done(name):
                    _collect(collection, name, family, module, 100 * seed + number)
                progress.update()
                if time.monotonic() > end:
                    return


def _collect(
    collection: Collection, name: str, family: str, module: tvm.IRModule, seed: int
) -> None:
    begin = time.monotonic()
    columns, passes = _measured(module, collection.limits.candidates, seed)
    if len(columns) < collection.limits.least:
        least = collection.limits.least
        collection.refuse(name, f"{len(columns)} candidates ran, {least} are needed")
        return
    timing = Timing(*(1e9 * passes.T[:, None, :]))
    details = {
        "kind": kind_of(module),
        "first_pass": timing.first[0].tolist(),
        "second_pass": timing.second[0].tolist(),
        "seconds": round(time.monotonic() - begin, 1),
    }
    record(collection, name, family, timing, details)
    none = np.zeros((1, 0), np.float32), np.zeros((0, 2), np.int64)
    write_feature_graph(collection.path(name), FEATURE_SET, *none, columns[:, None, :], timing)


def _measured(module: tvm.IRModule, candidates: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the distinct columns [c, columns] of random candidates that ran, and the seconds of
    both passes [c, 2]."""
    with tempfile.TemporaryDirectory() as work:
        database = measured_candidates(module, candidates, 1 + seed, work)
    records = database.get_all_tuning_records()
    ran = {
        columns_of(each.trace).tobytes(): [float(seconds) for seconds in each.run_secs]
        for each in records
        if each.run_secs and len(each.run_secs) == 2
    }
    columns = np.frombuffer(b"".join(ran), np.float32).reshape(-1, len(COLUMNS))
    return columns, np.array(list(ran.values())).reshape(-1, 2)
