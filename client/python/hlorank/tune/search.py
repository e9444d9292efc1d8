"""The tuner: a search strategy that uses the model and measurements."""

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
"""The first strategy is the default."""

_PREDICTED_AT_ONCE = 64
_MEASURED_AT_ONCE = 8
"""Candidates per step, with and without a model."""
_CONFIRMED = 3
"""Number of the fastest candidates that are measured again, longer, with the default."""
_KEPT = 3
"""Number of the fastest measured candidates from which the next round of predictions starts."""
_FRUITLESS_STEPS = 1000
"""Number of consecutive steps without a new candidate after which the search ends."""
_SAME_SCORE = 1e-6


@dataclass(frozen=True)
class Settings:
    """Settings of a search."""

    strategy: str
    with_model: bool = True
    measurements: int = 24
    """Maximum number of measured candidates, the default included."""
    seconds: float | None = None
    """Maximum duration; None for no limit."""
    predictions: int = 2048
    """Candidates that the model ranks before each round of measurements."""
    top_k: int = 4
    """Best of those, which are measured in a round."""
    seed: int = 0


class Predictor:
    """Scores candidates with the model of a server."""

    def __init__(
        self,
        client: Client,
        problem: Problem,
        model: str | None = None,
        trace: Trace | None = None,
    ):
        """Calls are recorded in ``trace``.

        ``model`` is for example ``layout-xla-cpu@3``; None selects the default of the task.
        """
        self._client, self._problem, self._model = client, problem, model
        self._trace = trace

    def scores(self, candidates: Candidates) -> np.ndarray:
        """Returns scores f32 [candidates]; lower is predicted faster.

        Raises:
            HlorankError: if the call fails.
        """
        configurations = self._problem.configurations(candidates)
        if self._trace:
            self._trace.write(configurations, top_k=1, model=self._model, with_scores=True)
        ranking = self._client.rank(
            self._problem.graph, configurations, top_k=1, model=self._model, with_scores=True
        )
        return ranking.scores


Listener = Callable[[Run], None]
"""Called with the state of the run after every change."""


class Tuner:
    """One search. ``run`` returns the result; the journal has every candidate."""

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
        """Searches until a limit is reached, then measures the best candidates again.

        Raises:
            HardwareError: if the program does not run with its default configuration.
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
        """Returns how many candidates may still be measured."""
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
        raise ValueError(f"strategy '{self._settings.strategy}' does not exist")

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
                strategy.update(np.array(known), np.array(costs))

    def _search_by_predictions(self, predictor: Predictor) -> None:
        while self._left():
            candidates, scores = self._best_predicted(predictor)
            if not len(candidates):
                # Thousands of predictions found no new candidate.
                return
            # The time limit may have been reached during the predictions.
            left = self._left()
            self._measure(candidates[:left], scores[:left])

    def _best_predicted(self, predictor: Predictor) -> tuple[Candidates, Sequence[float | None]]:
        """Returns the next candidates to measure, and their scores.

        If the model fails, these are the strategy's next candidates, without scores.
        """
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
                strategy.update(batch, scores)
                asked += len(batch)
                for candidate, score in zip(batch, scores.tolist(), strict=True):
                    found[candidate.tobytes()] = (score, candidate)
        except HlorankError as error:
            self._note({"predictions": asked, "error": str(error)}, begin)
            # Continues with the candidates that the model should have scored.
            new = self._unguided(batch, strategy)[:count]
            return new, [None] * len(new)
        self._note({"predictions": asked}, begin)
        chosen = self._choose(sorted(found.values(), key=lambda pair: pair[0]), count)
        return np.array([candidate for _, candidate in chosen]), [score for score, _ in chosen]

    def _unguided(self, batch: Candidates, strategy: Strategy) -> Candidates:
        """Returns the new candidates of this batch, or of a later one if it has none."""
        new = self._new(batch)
        for _ in range(_FRUITLESS_STEPS):
            if len(new) or not len(batch):
                break
            batch = strategy.ask()
            new = self._new(batch)
        return new

    def _start(self) -> Candidates:
        """Returns the default and the fastest measured candidates."""
        fastest = self._run.fastest()[:_KEPT]
        written = [self._problem.read(measurement.candidate) for measurement in fastest]
        return np.unique(np.array([self._problem.space.default, *written]), axis=0)

    def _choose(
        self, ranked: Sequence[tuple[float, np.ndarray]], count: int
    ) -> list[tuple[float, np.ndarray]]:
        """Returns the first new candidates.

        Candidates with the score of a measured one come last, since they are likely equivalent.
        """
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
        """Returns the distinct candidates that were not measured yet."""
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
        """Adds a row to the state."""
        self._run.add(row)
        if "candidate" in row:
            candidate = self._problem.read(row["candidate"])
            self._outcomes[candidate.tobytes()] = self._run.measurements[-1].outcome

    def _add_earlier(self, number: int, row: dict[str, Any]) -> None:
        """Adds a row of the search before it was stopped; ``number`` is its line."""
        try:
            self._add(row)
            self._earlier_seconds = max(self._earlier_seconds, row["seconds"])
        # Happens if the file was edited.
        except (KeyError, TypeError, ValueError, AttributeError, StopIteration) as error:
            message = f"line {number} of the results does not belong to this search"
            raise JournalError(message) from error

    def _measure(self, candidates: Candidates, scores: Sequence[float | None]) -> None:
        """Measures new candidates."""
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
            # The user's kernel may raise anything.
            except Exception as error:
                outcomes[i] = Outcome("lowering failed", message=first_line(error))
        measured = self._hardware.measure(list(modules.values()), SEARCH) if modules else []
        outcomes |= dict(zip(modules, measured, strict=True))
        return [outcomes[i] for i in range(len(candidates))]

    def _confirm(self) -> None:
        """Measures the fastest and the default again, and chooses the winner.

        The default wins if the difference is within the noise.
        """
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
    """Returns the index of the winner, and the noise; index 0, the default, wins within it."""
    ratios = [outcome.ratio for outcome in outcomes]
    # The default was measured against itself, so its ratio differs from 1 by noise alone.
    itself = abs(ratios[0] - 1) if np.isfinite(ratios[0]) else 0.0
    noise = max(outcomes[0].noise or 0.0, itself)
    place = int(np.argmin(ratios))
    return (place if ratios[place] < 1 - noise else 0), noise
