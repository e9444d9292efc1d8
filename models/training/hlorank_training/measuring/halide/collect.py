"""Measures random Halide pipelines with schedules of the Adams2019 autoscheduler. Resumable."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import halide as hl
import numpy as np
from hlorank_tune.measure.atomic_files import write_json
from hlorank_tune.measure.rounds import Protocol
from hlorank_tune.measure.workers import Worker
from tqdm import tqdm

from hlorank_training.measuring.halide.adams2019 import Draw
from hlorank_training.measuring.halide.features import (
    CONFIG_FEATURES,
    FEATURE_SET,
    NODE_FEATURES,
    PRODUCTS,
)
from hlorank_training.measuring.halide.pipelines import SMALL, RandomPipeline
from hlorank_training.measuring.halide.schedules import (
    PROTOCOL,
    WORKER,
    Compiled,
    Failed,
    ScheduleError,
    Schedules,
    Searched,
)
from hlorank_training.measuring.provenance import Collection, record, write_feature_graph

_LARGE_EVERY = 6
"""One of six pipelines is large."""
SLOWEST = 0.15
"""Maximum seconds of a run; slower schedules are not measured."""

GREEDY = Draw(0)
"""What the autoscheduler chooses itself, with a beam of one state."""
_NOISE = (0.15, 0.4, 0.8, 0.0, 0.3, 1.5, 0.4, 0.8)
_KEEP = (100, 100, 100, 1, 50, 100, 1, 50)
"""Noise on the weights and kept choices of a pipeline's draws, in turn."""
_BEAMS = (8, 4, 2)
"""Beams of the draws after the greedy one, and then of every eighth one in turn."""
_SLOWER = 10
"""How much longer than in the greedy search a state takes in the search of a beam, at most."""


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
    """How long a draw, or compiling, may take."""
    beam_seconds: float = 8.0
    """A wider beam is only drawn if it is expected to take less."""


class PipelineError(Exception):
    """A pipeline is left out."""


@dataclass(frozen=True)
class Working:
    """A schedule that compiles, and computes what the greedy one does."""

    draw: Draw
    searched: Searched
    compiled: Compiled


@dataclass
class _Drawn:
    """What was drawn for a pipeline."""

    working: list[Working] = field(default_factory=list)
    failed: list[tuple[Draw, str]] = field(default_factory=list)
    """Why the others are not measured."""


def collect_halide(
    folder: Path,
    minutes: float,
    protocol: Protocol = PROTOCOL,
    limits: ScheduleLimits = ScheduleLimits(),
) -> None:
    """Measures pipelines until the time limit; skips what files have."""
    source = f"halide {hl.get_host_target()}"
    collection = Collection(
        folder, "feature-set", protocol, limits, source, ("halide",), suffix=".npz"
    )
    columns = {
        "name": FEATURE_SET,
        "node_features": NODE_FEATURES,
        "config_features": CONFIG_FEATURES,
        "products": PRODUCTS,
    }
    write_json(folder / "feature_set.json", columns)
    end = time.monotonic() + 60 * minutes
    with Worker(WORKER) as worker, tqdm(desc="pipelines") as progress:
        for seed in map(_seed, count()):
            name = f"p{seed:05d}"
            if not collection.is_done(name):
                _collect(collection, name, seed, worker)
            progress.update()
            progress.set_postfix_str(name)
            if time.monotonic() > end:
                return


def _seed(number: int) -> int:
    place, rest = divmod(number, _LARGE_EVERY)
    return SMALL + number - place - 1 if rest else place


def _collect(collection: Collection, name: str, seed: int, worker: Worker) -> None:
    try:
        _measure(collection, name, seed, worker)
    except (PipelineError, ScheduleError) as error:
        tqdm.write(f"{name}: {error}")
        collection.refuse(name, str(error))


def _measure(collection: Collection, name: str, seed: int, worker: Worker) -> None:
    begin = time.monotonic()
    limits = collection.limits
    schedules = Schedules(worker, RandomPipeline(seed), limits.draw_seconds)
    drawn = _drawn(schedules, limits)
    if len(drawn.working) < limits.least:
        reasons = "; ".join(sorted({reason for _, reason in drawn.failed}))
        message = f"{len(drawn.working)} of {limits.least} distinct schedules: {reasons}"
        raise PipelineError(message)
    timing = schedules.measure(collection.protocol)
    working = drawn.working
    details = {
        "seed": seed,
        "stages": working[0].searched.schedule.stages,
        "draws": [vars(one.draw) for one in working],
        "halide_milliseconds": [one.searched.schedule.predicted_milliseconds for one in working],
        "search_seconds": [round(one.searched.seconds, 3) for one in working],
        "compile_seconds": [round(one.compiled.seconds, 3) for one in working],
        "first_pass": timing.first.min(0).tolist(),
        "second_pass": timing.second.min(0).tolist(),
        "refused": [[vars(draw), reason] for draw, reason in drawn.failed],
        "seconds": round(time.monotonic() - begin, 1),
    }
    record(collection, name, "random", timing, details)
    measured = [one.searched.schedule for one in working]
    columns = np.stack([schedule.config_features for schedule in measured])
    graph = measured[0].node_features, measured[0].edges
    write_feature_graph(collection.path(name), FEATURE_SET, *graph, columns, timing)


def _drawn(schedules: Schedules, limits: ScheduleLimits) -> _Drawn:
    """Draws schedules until there are enough.

    Raises:
        PipelineError: if the greedy schedule does not work, with which all are compared.
    """
    end = time.monotonic() + limits.seconds
    drawn = _Drawn()
    known = set()
    _add(drawn, known, schedules, GREEDY, limits)
    if drawn.failed:
        raise PipelineError(f"the greedy schedule: {drawn.failed[0][1]}")
    greedy_seconds = drawn.working[0].searched.seconds
    for draw in draws_after_greedy(limits.draws - 1, greedy_seconds, limits.beam_seconds):
        if len(drawn.working) >= limits.schedules or time.monotonic() > end:
            break
        _add(drawn, known, schedules, draw, limits)
    return drawn


def _add(
    drawn: _Drawn, known: set[str], schedules: Schedules, draw: Draw, limits: ScheduleLimits
) -> None:
    searched = schedules.search(draw, limits.draw_seconds)
    if isinstance(searched, Failed):
        drawn.failed.append((draw, searched.message))
        return
    if searched.schedule.digest in known:
        drawn.failed.append((draw, "repeats an earlier schedule"))
        return
    compiled = schedules.compile(draw, SLOWEST)
    if isinstance(compiled, Failed):
        drawn.failed.append((draw, compiled.message))
        return
    known.add(searched.schedule.digest)
    drawn.working.append(Working(draw, searched, compiled))


def draws_after_greedy(count: int, greedy_seconds: float, beam_seconds: float) -> Iterator[Draw]:
    """Yields ``count`` draws, as in Singh et al. (2021) with noise and dropout.

    Beams that would take longer than ``beam_seconds`` are narrower.
    """
    widest = max(1, int(beam_seconds / _SLOWER / max(greedy_seconds, 1e-3)))
    for number in range(1, count + 1):
        is_early = number <= len(_BEAMS)
        beam = _BEAMS[(number - 1) % len(_BEAMS)] if is_early or number % 8 == 0 else 1
        if is_early:
            yield Draw(number, beam=min(beam, widest))
        else:
            place = number % len(_NOISE)
            yield Draw(number, _NOISE[place], _KEEP[place], min(beam, widest))
