"""Finds a faster schedule of a pipeline in one call."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from hlorank.errors import HlorankError
from hlorank.halide.schedule import Schedule
from hlorank.halide.schedules import WORKER, Schedules
from hlorank.halide.script import PipelineFunction
from hlorank.measure.workers import Worker
from hlorank.search import Kept, connect, default_target
from hlorank.search.connection import server_error
from hlorank.tune.schedules.choosing import (
    Listener,
    Scores,
    compile_first,
    draw,
    measure,
    order,
)
from hlorank.tune.schedules.predictor import SchedulePredictor
from hlorank.tune.schedules.report import check_folder, write
from hlorank.tune.schedules.run import ScheduleRun, ScheduleSettings

_COMPILE_SECONDS = 120.0
"""How long compiling a schedule, and its first runs, may take."""


def tune_schedules(
    name: str,
    build: Callable[[], Any],
    server: str | None,
    out: Path,
    settings: ScheduleSettings,
    *,
    model: str | None = None,
    target: str | None = None,
    listener: Listener = lambda *_: None,
) -> ScheduleRun:
    """Draws schedules, ranks them, measures the first, and writes the fastest into ``out``.

    Args:
        name: Of the pipeline.
        build: Returns a new ``hlorank.halide.pipeline.Pipeline`` at every call. It is called in
            another process, so it must be picklable: a ``PipelineFunction``, or a function of a
            module.
        server: The address of a server; None takes the schedules in a random order.
        out: Folder of the results.
        settings: Limits.
        model: The model that ranks, for example ``halide-adams2019@1``; None selects the server's
            default for the feature set.
        target: The name of hardware, compiler and flags under which the server keeps what is
            measured, and learns from it in later searches; None for ``halide_target()``.
        listener: Shows the progress.

    Raises:
        HlorankError: if the pipeline cannot be built, or no server answers.
    """
    run = ScheduleRun(name, pipeline=_place(build))
    check_folder(out, run.pipeline)
    with Worker(WORKER) as worker, connect(server) if server else nullcontext() as client:
        kept = Kept(target or halide_target())
        predictor = SchedulePredictor(client, run, model, kept) if client else None
        scores = predictor.scores if predictor else _random_scores(settings.seed)
        schedules = Schedules(worker, build, _COMPILE_SECONDS)
        with _timed(run, "drawing"):
            draw(run, schedules, settings, listener, lambda greedy: _check(scores, greedy))
        with _timed(run, "ranking"):
            order(run, scores)
        with _timed(run, "compiling"):
            compile_first(run, schedules, settings.measurements, listener)
        with _timed(run, "measuring"):
            measure(run, schedules, listener)
        if predictor is not None:
            predictor.learn()
            run.kept = str(kept)
    write(run, out)
    return run


def _place(build: Callable[[], Any]) -> str:
    """Says where a pipeline comes from, alike in every process."""
    if isinstance(build, PipelineFunction):
        return str(build)
    module, name = getattr(build, "__module__", ""), getattr(build, "__qualname__", "")
    return f"{module}:{name}" if name else type(build).__qualname__


def _check(scores: Scores, greedy: Schedule) -> None:
    """Fails before more schedules are drawn if the server does not rank them."""
    try:
        scores([greedy])
    except HlorankError as error:
        raise server_error(error) from error


def halide_target() -> str:
    """Names the target of Halide's schedules on this machine, which run on one thread."""
    return default_target(f"Halide {version('halide')}")


def _random_scores(seed: int) -> Scores:
    return lambda schedules: np.random.default_rng(seed).permutation(len(schedules))


@contextmanager
def _timed(run: ScheduleRun, step: str) -> Iterator[None]:
    begin = time.monotonic()
    yield
    run.seconds[step] = time.monotonic() - begin
