"""The tuner: a strategy, with the model and the machine in the loop."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hlorank.client import Client
from hlorank.errors import HlorankError
from hlorank.tune.hardware import CONFIRM, SEARCH, Hardware, Outcome
from hlorank.tune.journal import Journal, JournalError
from hlorank.tune.problem import Problem
from hlorank.tune.run import Run
from hlorank.tune.space import Candidates
from hlorank.tune.strategies import Annealing, Exhaustive, Genetic, Random, Strategy
from hlorank.tune.trace import Trace
from hlorank.tune.worker import first_line

LAYOUT_STRATEGIES = ("genetic", "annealing", "random")
TILE_STRATEGIES = ("exhaustive",)
"""The first is what a task has where none is named."""

_PREDICTED_AT_ONCE = 64
_MEASURED_AT_ONCE = 8
"""Candidates of a step, where a model is asked and where none is."""
_CONFIRMED = 3
"""How many of the fastest are measured again, longer, with the default."""
_KEPT = 3
"""Of the fastest that were measured, from which the next round of predictions begins."""
_FRUITLESS_STEPS = 1000
"""Steps without a new candidate after which there is none."""
_SAME_SCORE = 1e-6


@dataclass(frozen=True)
class Settings:
    """How a search goes."""

    strategy: str
    with_model: bool = True
    measurements: int = 24
    """Candidates that are measured at most, the default included."""
    seconds: float | None = None
    """After which no more are measured; None for no limit."""
    predictions: int = 2048
    """Candidates that the model is asked about before each round of measurements."""
    top_k: int = 4
    """Of those, how many are measured in a round."""
    seed: int = 0


class Predictor:
    """Asks a server which candidates are fast."""

    def __init__(
        self,
        client: Client,
        problem: Problem,
        model: str | None = None,
        trace: Trace | None = None,
    ):
        """``model`` is such as ``layout-xla-cpu@3``; None for the default of the task.

        What is asked is written to ``trace``, where there is one.
        """
        self._client, self._problem, self._model = client, problem, model
        self._trace = trace

    def scores(self, candidates: Candidates) -> np.ndarray:
        """f32 [candidates], lower is predicted faster.

        Raises:
            HlorankError: where the server does not answer, or refuses.
        """
        configurations = self._problem.configurations(candidates)
        if self._trace:
            self._trace.write(configurations, top_k=1, model=self._model, with_scores=True)
        ranking = self._client.rank(
            self._problem.graph, configurations, top_k=1, model=self._model, with_scores=True
        )
        return ranking.scores


Listener = Callable[[Run], None]
"""Called with what is known whenever there is something new."""


class Tuner:
    """One search. ``run`` gives what it found; everything that it tried is in its journal."""

    def __init__(
        self,
        problem: Problem,
        hardware: Hardware,
        predictor: Predictor | None,
        settings: Settings,
        journal: Journal,
        listener: Listener = lambda _: None,
    ):
        self._problem, self._hardware, self._predictor = problem, hardware, predictor
        self._settings, self._journal, self._listener = settings, journal, listener
        self._random = np.random.default_rng(settings.seed)
        self._run = Run(problem.name, problem.task, settings.strategy, settings.with_model)
        self._outcomes: dict[bytes, Outcome] = {}
        self._earlier_seconds = 0.0
        for number, row in enumerate(journal.rows, 2):
            self._add_earlier(number, row)
        self._begin = time.monotonic()

    def run(self) -> Run:
        """Searches until the budget is spent, then measures the best again.

        Raises:
            HardwareError: where the program does not run with its default configuration.
        """
        if self._run.measurements:
            self._listener(self._run)
        if self._run.best is None:
            self._measure(self._new(self._problem.space.default[None]), [None])
            if self._predictor is None:
                self._search_by_measuring()
            else:
                self._search_by_predictions(self._predictor)
            self._confirm()
        return self._run

    def _seconds(self) -> float:
        return self._earlier_seconds + time.monotonic() - self._begin

    def _left(self) -> int:
        """How many candidates may still be measured."""
        limit = self._settings.seconds
        is_late = limit is not None and self._seconds() >= limit
        left = self._settings.measurements - len(self._run.measurements)
        return 0 if is_late else max(0, left)

    def _strategy(self, batch: int, steps: int, start: Candidates) -> Strategy:
        space, random = self._problem.space, self._random
        match self._settings.strategy:
            case "exhaustive":
                return Exhaustive(space, random, batch)
            case "random":
                return Random(space, random, batch)
            case "genetic":
                return Genetic(space, random, batch, start)
            case "annealing":
                return Annealing(space, random, batch, steps, start)
        raise ValueError(f"there is no strategy '{self._settings.strategy}'")

    def _search_by_measuring(self) -> None:
        steps = self._settings.measurements // _MEASURED_AT_ONCE
        start = self._problem.space.default[None]
        strategy = self._strategy(_MEASURED_AT_ONCE, steps, start)
        fruitless = 0
        while self._left() and fruitless < _FRUITLESS_STEPS:
            asked = strategy.ask()
            if not len(asked):
                return
            new = self._new(asked)[: self._left()]
            fruitless = 0 if len(new) else fruitless + 1
            self._measure(new, [None] * len(new))
            known = [c for c in asked if c.tobytes() in self._outcomes]
            if known:
                costs = [self._outcomes[c.tobytes()].ratio for c in known]
                strategy.tell(np.array(known), np.array(costs))

    def _search_by_predictions(self, predictor: Predictor) -> None:
        while self._left():
            candidates, scores = self._best_predicted(predictor)
            if not len(candidates):
                # Thousands of predictions, and nothing new.
                return
            # Predicting takes time, too.
            left = self._left()
            self._measure(candidates[:left], scores[:left])

    def _best_predicted(self, predictor: Predictor) -> tuple[Candidates, Sequence[float | None]]:
        """The next candidates to measure: by the model, or as they come where it fails."""
        begin, count = time.monotonic(), min(self._settings.top_k, self._left())
        steps = -(-self._settings.predictions // _PREDICTED_AT_ONCE)
        strategy = self._strategy(_PREDICTED_AT_ONCE, steps, self._start())
        found: dict[bytes, tuple[float, np.ndarray]] = {}
        asked = 0
        try:
            while asked < self._settings.predictions and self._left():
                batch = strategy.ask()
                if not len(batch):
                    break
                scores = predictor.scores(batch)
                strategy.tell(batch, scores)
                asked += len(batch)
                for candidate, score in zip(batch, scores.tolist(), strict=True):
                    found[candidate.tobytes()] = (score, candidate)
        except HlorankError as error:
            self._note({"predictions": asked, "error": str(error)}, begin)
            # What comes next is what the strategy would have asked about.
            new = self._unguided(batch, strategy)[:count]
            return new, [None] * len(new)
        self._note({"predictions": asked}, begin)
        chosen = self._choose(sorted(found.values(), key=lambda pair: pair[0]), count)
        return np.array([candidate for _, candidate in chosen]), [score for score, _ in chosen]

    def _unguided(self, batch: Candidates, strategy: Strategy) -> Candidates:
        """The new ones of a batch, or of a later one."""
        new = self._new(batch)
        for _ in range(_FRUITLESS_STEPS):
            if len(new) or not len(batch):
                break
            batch = strategy.ask()
            new = self._new(batch)
        return new

    def _start(self) -> Candidates:
        """The default, and the fastest that were measured."""
        fastest = self._run.fastest()[:_KEPT]
        written = [self._problem.read(measurement.candidate) for measurement in fastest]
        return np.unique(np.array([self._problem.space.default, *written]), axis=0)

    def _choose(
        self, ranked: Sequence[tuple[float, np.ndarray]], count: int
    ) -> list[tuple[float, np.ndarray]]:
        """The first that are new; what the model cannot tell from a measured one comes last."""
        chosen, alike = [], []
        seen = [m.score for m in self._run.measurements if m.score is not None]
        for score, candidate in ranked:
            if len(chosen) == count:
                break
            if candidate.tobytes() in self._outcomes:
                continue
            is_known = any(abs(score - other) <= _SAME_SCORE * abs(other) for other in seen)
            (alike if is_known else chosen).append((score, candidate))
            seen.append(score)
        return (chosen + alike)[:count]

    def _new(self, candidates: Candidates) -> Candidates:
        """Those that were not measured, each once."""
        seen = {c.tobytes(): c for c in candidates if c.tobytes() not in self._outcomes}
        return np.array(list(seen.values()), candidates.dtype).reshape(-1, *candidates.shape[1:])

    def _note(self, row: dict[str, Any], begin: float) -> None:
        """Writes a row about predictions."""
        self._write(row | {"took": round(time.monotonic() - begin, 3)})
        self._listener(self._run)

    def _write(self, row: dict[str, Any]) -> None:
        row |= {"seconds": round(self._seconds(), 1)}
        self._journal.write(row)
        self._add(row)

    def _add(self, row: dict[str, Any]) -> None:
        """Takes what is known from a row."""
        self._run.add(row)
        if "candidate" in row:
            candidate = self._problem.read(row["candidate"])
            self._outcomes[candidate.tobytes()] = self._run.measurements[-1].outcome

    def _add_earlier(self, number: int, row: dict[str, Any]) -> None:
        """Takes a row, which stands in the so many-th line, of an earlier start of the search."""
        try:
            self._add(row)
            self._earlier_seconds = max(self._earlier_seconds, row["seconds"])
        # The file was edited.
        except (KeyError, TypeError, ValueError, AttributeError, StopIteration) as error:
            raise JournalError(f"line {number} of the results is no row of this search") from error

    def _measure(self, candidates: Candidates, scores: Sequence[float | None]) -> None:
        """Measures candidates that are new."""
        if not len(candidates):
            return
        outcomes = self._measured(candidates)
        for candidate, outcome, score in zip(candidates, outcomes, scores, strict=True):
            row = {"candidate": self._problem.written(candidate), **asdict(outcome)}
            self._write(row if score is None else row | {"score": score})
        self._listener(self._run)

    def _measured(self, candidates: Candidates) -> list[Outcome]:
        modules: dict[int, bytes] = {}
        outcomes: dict[int, Outcome] = {}
        for i, candidate in enumerate(candidates):
            try:
                modules[i] = self._problem.module(candidate)
            # Of a kernel that is somebody else's.
            except Exception as error:
                outcomes[i] = Outcome("lowering failed", message=first_line(error))
        measured = self._hardware.measure(list(modules.values()), SEARCH) if modules else []
        outcomes |= dict(zip(modules, measured, strict=True))
        return [outcomes[i] for i in range(len(candidates))]

    def _confirm(self) -> None:
        """Measures the fastest and the default again; the default wins within the noise."""
        default, *_ = self._run.measurements
        fastest = [m for m in self._run.fastest() if m is not default][:_CONFIRMED]
        written = [m.candidate for m in (default, *fastest)]
        modules = [self._problem.module(self._problem.read(candidate)) for candidate in written]
        outcomes = self._hardware.measure(modules, CONFIRM)
        place, noise = _winner(outcomes)
        confirmed = [
            {"candidate": candidate, **asdict(outcome)}
            for candidate, outcome in zip(written, outcomes, strict=True)
        ]
        self._write({"best": written[place], "noise": noise, "confirmed": confirmed})
        self._listener(self._run)


def _winner(outcomes: Sequence[Outcome]) -> tuple[int, float]:
    """The place of the fastest, and the noise; the first, the default, wins within that."""
    ratios = [outcome.ratio for outcome in outcomes]
    # The default was measured beside itself, so that this differs from 1 by noise alone.
    itself = abs(ratios[0] - 1) if np.isfinite(ratios[0]) else 0.0
    noise = max(outcomes[0].noise or 0.0, itself)
    place = int(np.argmin(ratios))
    return (place if ratios[place] < 1 - noise else 0), noise
