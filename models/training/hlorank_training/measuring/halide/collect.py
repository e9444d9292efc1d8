"""Measures random Halide pipelines with schedules of the Adams2019 autoscheduler. Resumable.

Several processes may collect into one folder: each takes pipelines that no other one has.
"""

import fcntl
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from itertools import count
from pathlib import Path

import halide as hl
import numpy as np
from hlorank.iree.workers import Worker, WorkerError
from hlorank.measure.atomic_files import write_atomically, write_json
from hlorank.measure.rounds import Protocol, Timing
from tqdm import tqdm

from hlorank_training.measuring.halide.adams2019 import (
    CONFIG_FEATURES,
    FEATURE_SET,
    NODE_FEATURES,
    Draw,
)
from hlorank_training.measuring.halide.worker import Compile, Compiled, Failed, Measure
from hlorank_training.measuring.provenance import Collection, record

PROTOCOL = Protocol(warmups=1, rounds=10, most_rounds=40, seconds=1.0, tries=4, clock="process")
WORKER = "hlorank_training.measuring.halide.worker"
_NOISE = (0.15, 0.4, 0.8, 0.0, 0.3, 1.5, 0.4, 0.8)
_KEEP = (100, 100, 100, 1, 50, 100, 1, 50)
"""Noise on the weights and kept choices of a pipeline's draws, in turn."""
_BEAMS = (8, 4, 2)
"""Beams of the draws after the greedy one, and then of every eighth one in turn."""
_SLOWER = 10
"""How much longer than in the greedy search a state takes in the search of a beam, at most."""
_MEASURE_SECONDS = 600.0


@dataclass(frozen=True)
class ScheduleLimits:
    """What is drawn for a pipeline."""

    schedules: int = 32
    """Distinct schedules that are measured."""
    draws: int = 64
    """Draws, of which some repeat others, fail, or run too long."""
    least: int = 8
    """Pipelines with fewer distinct schedules are left out."""
    seconds: float = 240.0
    """After which no more schedules are drawn for a pipeline."""
    draw_seconds: float = 30.0
    """How long a draw may take; a wider beam is only drawn if it is expected to take less."""


class PipelineError(Exception):
    """A pipeline is left out."""


def collect_halide(
    folder: Path, minutes: float, protocol: Protocol, limits: ScheduleLimits
) -> None:
    """Measures pipelines until the time limit; skips what files have."""
    source = f"halide {hl.get_host_target()}"
    collection = Collection(
        folder, "feature-set", protocol, limits, source, ("halide",), suffix=".npz"
    )
    columns = {"node_features": NODE_FEATURES, "config_features": CONFIG_FEATURES}
    write_json(folder / "feature_set.json", {"name": FEATURE_SET, **columns})
    end = time.monotonic() + 60 * minutes
    with Worker(WORKER) as worker, tqdm(desc="pipelines") as progress:
        for seed in count():
            name = f"p{seed:05d}"
            with _claimed(folder / f".{name}.lock") as is_ours:
                if is_ours and not _is_done(collection, name):
                    _collect(collection, name, seed, worker)
            progress.update()
            progress.set_postfix_str(name)
            if time.monotonic() > end:
                return


def draws(greedy_seconds: float, limits: ScheduleLimits) -> Iterator[Draw]:
    """Yields the draws after the greedy one; beams that would take too long are narrower."""
    widest = max(1, int(limits.draw_seconds / _SLOWER / max(greedy_seconds, 1e-3)))
    for number in range(1, limits.draws):
        is_early = number <= len(_BEAMS)
        beam = _BEAMS[(number - 1) % len(_BEAMS)] if is_early or number % 8 == 0 else 1
        if is_early:
            yield Draw(number, beam=min(beam, widest))
        else:
            place = number % len(_NOISE)
            yield Draw(number, _NOISE[place], _KEEP[place], min(beam, widest))


def _is_done(collection: Collection, name: str) -> bool:
    return collection.has(name) or (collection.folder / f"{name}.refused.json").exists()


def _collect(collection: Collection, name: str, seed: int, worker: Worker) -> None:
    try:
        _measure(collection, name, seed, worker)
    except (PipelineError, WorkerError) as error:
        tqdm.write(f"{name}: {error}")
        refused = {"name": name, "reason": str(error)}
        write_json(collection.folder / f"{name}.refused.json", refused)


def _measure(collection: Collection, name: str, seed: int, worker: Worker) -> None:
    begin, limits = time.monotonic(), collection.limits
    drawn, failed = _drawn(seed, worker, limits)
    if len(drawn) < limits.least:
        reasons = "; ".join(sorted({reason for _, reason in failed}))
        raise PipelineError(f"{len(drawn)} of {limits.least} distinct schedules: {reasons}")
    with _alone(collection.folder):
        worker.send(Measure(collection.protocol))
        timing = worker.receive(_MEASURE_SECONDS)
    if isinstance(timing, Failed):
        raise PipelineError(timing.message)
    schedules = [compiled for _, compiled in drawn]
    details = {
        "seed": seed,
        "stages": schedules[0].schedule.stages,
        "draws": [vars(draw) for draw, _ in drawn],
        "halide_milliseconds": [s.schedule.predicted_milliseconds for s in schedules],
        "search_seconds": [round(s.search_seconds, 3) for s in schedules],
        "compile_seconds": [round(s.compile_seconds, 3) for s in schedules],
        "first_pass": timing.first.min(0).tolist(),
        "second_pass": timing.second.min(0).tolist(),
        "refused": [[vars(draw), reason] for draw, reason in failed],
        "seconds": round(time.monotonic() - begin, 1),
    }
    record(collection, name, "random", timing, details)
    write_atomically(collection.path(name), measured_file(schedules, timing))


def _drawn(
    seed: int, worker: Worker, limits: ScheduleLimits
) -> tuple[list[tuple[Draw, Compiled]], list[tuple[Draw, str]]]:
    """Draws schedules until there are enough; returns those that work, and why others do not."""
    end = time.monotonic() + limits.seconds
    greedy = Draw(0)
    first = _asked(Compile(seed, greedy), worker, limits)
    if isinstance(first, Failed):
        raise PipelineError(f"the greedy schedule: {first.message}")
    working: list[tuple[Draw, Compiled]] = [(greedy, first)]
    failed: list[tuple[Draw, str]] = []
    for draw in draws(first.search_seconds, limits):
        if len(working) >= limits.schedules or time.monotonic() > end:
            break
        try:
            found = _asked(Compile(seed, draw), worker, limits)
        except WorkerError as error:
            found = Failed(f"the compiler {error}")
            # The process had the earlier schedules, which draws always give again.
            for earlier, _ in working:
                _asked(Compile(seed, earlier), worker, limits)
        if isinstance(found, Failed):
            failed.append((draw, found.message))
        else:
            working.append((draw, found))
    return working, failed


def _asked(request: Compile, worker: Worker, limits: ScheduleLimits) -> Compiled | Failed:
    worker.send(request)
    return worker.receive(limits.draw_seconds)


def measured_file(schedules: Sequence[Compiled], timing: Timing) -> bytes:
    """Returns the npz file of a measured graph of a feature set; run times are nanoseconds."""
    first, file = schedules[0].schedule, BytesIO()
    np.savez_compressed(
        file,
        feature_set=np.frombuffer(FEATURE_SET.encode(), np.uint8),
        node_features=first.node_features,
        edge_index=first.edges,
        config_features=np.stack([compiled.schedule.config_features for compiled in schedules]),
        config_runtime=timing.label(),
    )
    return file.getvalue()


@contextmanager
def _claimed(path: Path) -> Iterator[bool]:
    """Yields whether no other process has this lock file, which is removed afterwards."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
        path.unlink(missing_ok=True)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Waits until no other process that collects into the folder measures."""
    with (folder / ".measuring.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
