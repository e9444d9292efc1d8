"""The steps of a search: which schedules are drawn, in which order, and which are measured."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from hlorank.halide.drawing import GREEDY, draws_after_greedy
from hlorank.halide.messages import Compiled, Failed, Searched
from hlorank.halide.schedule import Draw, Schedule
from hlorank.halide.schedules import PROTOCOL
from hlorank.measure import rounds
from hlorank.tune.schedules.run import Candidate, ScheduleRun, ScheduleSettings

_SLOWER = 10.0
"""A schedule that takes this many times as long as the greedy one is not measured."""
_SLOWEST, _SLOWEST_GREEDY = 0.1, 60.0
"""Seconds of a run that are always accepted, and those that the greedy schedule may take."""
_GREEDY_SECONDS = 600.0
"""How long the greedy draw may take."""
_LONGER = 5.0
"""Another draw may take this many times as long as the greedy one."""

Listener = Callable[[str, int, int], Any]
"""Takes a step, how much of it is done, and how much there is."""

Scores = Callable[[Sequence[Schedule]], np.ndarray]
"""Scores schedules; lower is predicted faster."""


class Compiler(Protocol):
    """Draws, compiles and measures: ``hlorank.halide.schedules.Schedules``."""

    def search(self, draw: Draw, seconds: float) -> Searched | Failed: ...  # noqa: D102

    def compile(self, draw: Draw, slowest: float) -> Compiled | Failed: ...  # noqa: D102

    def measure(self, protocol: rounds.Protocol) -> rounds.Timing: ...  # noqa: D102


def draw(
    run: ScheduleRun,
    compiler: Compiler,
    settings: ScheduleSettings,
    listener: Listener,
    check: Callable[[Schedule], Any],
) -> None:
    """Draws the greedy schedule and others; those that repeat an earlier one are only counted.

    ``check`` is called with the greedy schedule, before the others are drawn.
    """
    known: set[str] = set()
    listener("drawing", 0, settings.draws)
    greedy_seconds = _draw_one(run, known, compiler, GREEDY, _GREEDY_SECONDS)
    if run.greedy is not None:
        check(run.greedy.schedule)
    after = draws_after_greedy(settings.draws - 1, greedy_seconds, settings.beam_seconds)
    longest = max(settings.draw_seconds, _LONGER * greedy_seconds)
    for number, following in enumerate(after, 1):
        listener("drawing", number, settings.draws)
        _draw_one(run, known, compiler, following, longest)
    listener("drawing", settings.draws, settings.draws)


def _draw_one(
    run: ScheduleRun, known: set[str], compiler: Compiler, draw: Draw, seconds: float
) -> float:
    """Returns the processor time of the search; 0 if it failed."""
    searched = compiler.search(draw, seconds)
    if isinstance(searched, Failed):
        run.candidates.append(Candidate(draw, problem=searched.message))
        return 0.0
    if searched.schedule.digest in known:
        run.repeats += 1
    else:
        known.add(searched.schedule.digest)
        run.candidates.append(Candidate(draw, searched.schedule))
    return searched.seconds


def order(run: ScheduleRun, scores: Scores) -> None:
    """Sorts the schedules by their scores, equal ones by their draws; failed draws come last."""
    drawn = run.ranked
    if drawn:
        found = scores([candidate.schedule for candidate in drawn])
        for candidate, score in zip(drawn, found, strict=True):
            candidate.score = float(score)
    run.candidates.sort(key=lambda one: (one.score is None, one.score or 0.0, one.draw.number))


def compile_first(run: ScheduleRun, compiler: Compiler, count: int, listener: Listener) -> None:
    """Compiles the greedy schedule, then the first ``count`` that work.

    A schedule that does not compile, crashes, runs too long or computes something else keeps the
    reason, and the next one of the ranking takes its place.
    """
    listener("compiling", 0, count + 1)
    greedy, works = run.greedy, 0
    seconds = _compile(greedy, compiler, _SLOWEST_GREEDY) if greedy is not None else None
    slowest = _SLOWEST_GREEDY if seconds is None else max(_SLOWEST, _SLOWER * seconds)
    for candidate in run.ranked:
        if works >= count:
            break
        listener("compiling", 1 + works, count + 1)
        if not candidate.is_greedy:
            _compile(candidate, compiler, slowest)
        works += not candidate.problem
    listener("compiling", count + 1, count + 1)


def _compile(candidate: Candidate, compiler: Compiler, slowest: float) -> float | None:
    """Returns the seconds of a run; None if the schedule fails."""
    answer = compiler.compile(candidate.draw, slowest)
    if isinstance(answer, Failed):
        candidate.problem, candidate.failure = answer.message, answer.failure
        return None
    candidate.compile_seconds = answer.seconds
    return answer.run_seconds


def measure(run: ScheduleRun, compiler: Compiler, listener: Listener) -> None:
    """Measures what was compiled, in the same rounds."""
    # In the order of compiling: the greedy one first, then as ranked.
    compiled = [one for one in run.ranked if one.compile_seconds is not None]
    compiled.sort(key=lambda one: not one.is_greedy)
    if not compiled:
        return
    listener("measuring", 0, 1)
    timing = compiler.measure(PROTOCOL)
    for candidate, nanoseconds in zip(compiled, timing.label(), strict=True):
        candidate.nanoseconds = float(nanoseconds)
    run.noise = timing.noise()
    listener("measuring", 1, 1)
