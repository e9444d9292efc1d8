"""The tuner: a search strategy that uses the model and measurements."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from math import inf
from time import monotonic
from typing import Any, Protocol

import numpy as np

from hlorank.errors import HlorankError
from hlorank.measure.rounds import Protocol as Rounds
from hlorank.task import Task
from hlorank.tune.budget import CONFIRMED, PARTS, Budget
from hlorank.tune.fusion.annealing import FusionAnnealing
from hlorank.tune.hardware import CONFIRM, SEARCH, Outcome, by_clock
from hlorank.tune.journal import Journal, JournalError
from hlorank.tune.predictor import Chosen, Predictor
from hlorank.tune.problem import Problem
from hlorank.tune.run import Listener, Run
from hlorank.tune.space import Candidates
from hlorank.tune.strategies import Annealing, Exhaustive, Genetic, Random, Strategy
from hlorank.tune.worker import first_line

LAYOUT_STRATEGIES = ("genetic", "annealing", "random")
TILE_STRATEGIES = ("exhaustive",)
FUSION_STRATEGIES = ("annealing", "genetic", "random")
STRATEGIES: dict[Task, tuple[str, ...]] = {
    "layout": LAYOUT_STRATEGIES,
    "tile": TILE_STRATEGIES,
    "fusion": FUSION_STRATEGIES,
}
"""The first strategy is the default."""

_PREDICTED_AT_ONCE = 64
_MEASURED_AT_ONCE = 8
"""Candidates per step, with and without a model."""
_KEPT = 3
"""Number of the fastest measured candidates from which the next round of predictions starts."""
_FRUITLESS_STEPS = 1000
"""Number of consecutive steps without a new candidate after which the search ends."""


@dataclass(frozen=True)
class Settings:
    """Settings of a search."""

    strategy: str
    with_model: bool = True
    measurements: int = 24
    """Maximum number of measured candidates, the program itself and the default included."""
    seconds: float | None = None
    """Maximum duration, the confirmation included; None for no limit."""
    predictions: int = 2048
    """Candidates that the model ranks before each round of measurements."""
    top_k: int = 4
    """Best of those, which are measured in a round."""
    seed: int = 0


class Machine(Protocol):
    """Measures the programs of one problem."""

    def measure(
        self,
        programs: Sequence[bytes],
        protocol: Rounds,
        seconds: float = inf,
        report: Callable[[str], None] = lambda _: None,
    ) -> list[Outcome]:
        """Measures programs beside the user's program; see ``Hardware.measure``."""
        ...


class Tuner:
    """One search. ``run`` returns the result; the journal has every candidate."""

    def __init__(
        self,
        problem: Problem,
        hardware: Machine,
        predictor: Predictor | None,
        settings: Settings,
        journal: Journal,
        listener: Listener = lambda _: None,
        clock: Callable[[], float] = monotonic,
    ):
        self._problem, self._hardware, self._predictor = problem, hardware, predictor
        self._settings, self._journal, self._listener = settings, journal, listener
        self._random = np.random.default_rng(settings.seed)
        self._run = Run(
            problem.name,
            problem.task,
            settings.strategy,
            settings.with_model,
            problem.subject,
            problem.written(problem.default),
        )
        self._outcomes: dict[bytes, Outcome] = {}
        spent = 0.0
        for number, row in enumerate(journal.rows, 2):
            spent = max(spent, self._add_earlier(number, row))
        self._budget = Budget(settings.seconds, spent, clock)

    def run(self) -> Run:
        """Searches until a limit is reached, then measures the best candidates again.

        Raises:
            HardwareError: if the user's program does not run.
            ServerError: if the server does not rank the program, before anything is measured.
        """
        if self._run.measurements:
            self._listener(self._run)
        if self._run.best is None:
            if not self._run.parts:
                self._search()
            self._confirm()
        return self._run

    def _search(self) -> None:
        if self._predictor is not None and self._left():
            self._phase("predicting: asks the server for one score")
            self._predictor.check()
            self._teach(self._predictor)
        first = [self._problem.space.default, self._problem.default]
        if self._predictor is not None and self._left() > len(first):
            first += list(self._predictor.earlier())
        new = self._new(np.array(first))
        self._measure(new, [None] * len(new))
        if self._predictor is None:
            self._search_by_measuring()
        else:
            self._search_by_predictions(self._predictor)
            self._predictor.finish()

    def _teach(self, predictor: Predictor) -> None:
        """Passes on what was measured before the search was stopped."""
        measured = self._run.measurements
        if measured:
            read = [self._problem.read(measurement.candidate) for measurement in measured]
            predictor.learn(np.array(read), [measurement.outcome for measurement in measured])

    def _phase(self, description: str) -> None:
        self._run.phase = description
        self._listener(self._run)

    def _left(self) -> int:
        """Returns how many candidates may still be measured."""
        left = self._settings.measurements - len(self._run.measurements)
        return self._budget.fits(max(0, left))

    def _strategy(self, batch: int, steps: int, start: Candidates) -> Strategy:
        space, random = self._problem.space, self._random
        match self._settings.strategy:
            case "exhaustive":
                return Exhaustive(space, random, batch)
            case "random":
                return Random(space, random, batch)
            case "genetic":
                return Genetic(space, random, batch, start)
            case "annealing" if self._problem.task == "fusion":
                return FusionAnnealing(space, random, batch, steps, start)
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
            chosen = self._best_predicted(predictor)
            if not len(chosen.candidates):
                # Thousands of predictions found no new candidate.
                return
            # The time limit may have been reached during the predictions.
            left = self._left()
            self._measure(chosen.candidates[:left], chosen.scores[:left], chosen.unit)

    def _best_predicted(self, predictor: Predictor) -> Chosen:
        """Returns the next candidates to measure.

        If the model fails, these are the strategy's next candidates, without scores.
        """
        begin, count = self._budget.spent(), min(self._settings.top_k, self._left())
        steps = -(-self._settings.predictions // _PREDICTED_AT_ONCE)
        start = self._start()
        strategy = self._strategy(_PREDICTED_AT_ONCE, steps, start)
        found = [start[:0]]
        asked = 0
        try:
            while asked < self._settings.predictions and self._left():
                batch = strategy.ask()
                if not len(batch):
                    break
                self._phase(f"predicting: {asked:,} of {self._settings.predictions:,} done")
                scores = predictor.scores(batch, max(1.0, self._budget.for_search()))
                strategy.update(batch, scores)
                asked += len(batch)
                # An infinite score means that the model has no prediction.
                found.append(batch[np.isfinite(scores)])
            new = self._new(np.concatenate(found))
            chosen = predictor.choose(new, count, max(1.0, self._budget.for_search()))
        except HlorankError as error:
            self._note({"predictions": asked, "error": str(error)}, begin)
            # Continues with the candidates that the model should have scored.
            new = self._unguided(batch, strategy)[:count]
            return Chosen(new, [None] * len(new), None)
        self._note({"predictions": asked}, begin)
        return chosen

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

    def _new(self, candidates: Candidates) -> Candidates:
        """Returns the distinct candidates that were not measured yet."""
        seen = {c.tobytes(): c for c in candidates if c.tobytes() not in self._outcomes}
        return np.array(list(seen.values()), candidates.dtype).reshape(-1, *candidates.shape[1:])

    def _note(self, row: dict[str, Any], begin: float) -> None:
        """Writes a row about predictions."""
        self._write(row | {"took": round(self._budget.spent() - begin, 3)})
        self._listener(self._run)

    def _write(self, row: dict[str, Any]) -> None:
        row |= {"seconds": round(self._budget.spent(), 1)}
        self._journal.write(row)
        self._add(row)

    def _add(self, row: dict[str, Any]) -> None:
        """Adds a row to the state."""
        self._run.add(row)
        if "candidate" in row:
            candidate = self._problem.read(row["candidate"])
            self._outcomes[candidate.tobytes()] = self._run.measurements[-1].outcome

    def _add_earlier(self, number: int, row: dict[str, Any]) -> float:
        """Adds a row of the search before it was stopped, and returns the seconds until then.

        ``number`` is its line.
        """
        try:
            self._add(row)
            return float(row["seconds"])
        # Happens if the file was edited.
        except (KeyError, TypeError, ValueError, AttributeError, StopIteration) as error:
            message = f"line {number} of the results does not belong to this search"
            raise JournalError(message) from error

    def _measure(
        self, candidates: Candidates, scores: Sequence[float | None], unit: str | None = None
    ) -> None:
        """Measures new candidates, and passes the outcomes on to the server."""
        if not len(candidates):
            return
        outcomes = self._measured(candidates)
        for candidate, outcome, score in zip(candidates, outcomes, scores, strict=True):
            row = {"candidate": self._problem.written(candidate), **asdict(outcome)}
            self._write(row if score is None else row | {"score": score, "unit": unit})
        self._listener(self._run)
        if self._predictor is not None:
            self._predictor.learn(candidates, outcomes)

    def _measured(self, candidates: Candidates) -> list[Outcome]:
        programs: dict[int, bytes] = {}
        outcomes: dict[int, Outcome] = {}
        for i, candidate in enumerate(candidates):
            self._phase(f"compiling: lowers candidate {i + 1} of {len(candidates)}")
            try:
                programs[i] = self._problem.program(candidate)
            # The user's kernel may raise anything.
            except Exception as error:
                outcomes[i] = Outcome("lowering failed", message=first_line(error))
        if programs:
            measured = self._timed(list(programs.values()), SEARCH, self._budget.for_search(), "")
            outcomes |= dict(zip(programs, measured, strict=True))
        return [outcomes[i] for i in range(len(candidates))]

    def _timed(
        self, programs: Sequence[bytes], protocol: Rounds, seconds: float, part: str
    ) -> list[Outcome]:
        """Measures programs, which takes about ``seconds`` at most; ``part`` is for the display."""
        begin = self._budget.spent()
        own = [m.outcome.nanoseconds or 0 for m in self._run.measurements[:1]]
        timed = by_clock(protocol, self._problem.clock)
        patient = self._budget.patient(timed, (len(programs) + 1) * sum(own) / 1e9)
        outcomes = self._hardware.measure(
            programs, patient, seconds, lambda phase: self._phase(part + phase)
        )
        self._budget.took(len(programs), self._budget.spent() - begin)
        return outcomes

    def _confirm(self) -> None:
        """Measures the fastest, the program itself and the default again; chooses the winner.

        Stops early if the time is over, but not before the first part. The program itself wins if
        the difference is within the noise.
        """
        numbers = self._confirmed_numbers()
        if len(numbers) > 1:
            written = [self._run.measurements[number].candidate for number in numbers]
            programs = [self._problem.program(self._problem.read(w)) for w in written]
            took = 0.0
            while len(self._run.parts) < PARTS and (
                not self._run.parts or self._budget.left() > took
            ):
                begin = self._budget.spent()
                self._confirm_part(written, programs)
                took = self._budget.spent() - begin
        place, noise = winner(self._run.confirmed)
        noise = noise if self._run.parts else self._run.measurements[0].outcome.noise
        self._write({"best": self._run.measurements[place].candidate, "noise": noise})
        self._phase("")

    def _confirmed_numbers(self) -> list[int]:
        """Returns the numbers of the program itself, the default, and the fastest candidates."""
        if self._run.parts:
            return list(self._run.parts[0])
        working = [m.number for m in self._run.fastest() if m.number]
        default = [m.number for m in self._run.measurements if m.candidate == self._run.default]
        default = [number for number in default if number in working]
        return list(dict.fromkeys([0, *default, *working[:CONFIRMED]]))

    def _confirm_part(self, written: Sequence[Any], programs: Sequence[bytes]) -> None:
        part = f"confirming, part {len(self._run.parts) + 1} of {PARTS}: "
        outcomes = self._timed(programs, CONFIRM, self._budget.left(), part)
        confirmed = [
            {"candidate": candidate, **asdict(outcome)}
            for candidate, outcome in zip(written, outcomes, strict=True)
        ]
        self._write({"confirmed": confirmed})


def winner(confirmed: dict[int, Outcome]) -> tuple[int, float]:
    """Returns the number of the winner, and the noise; 0, the user's program, wins within it."""
    if not confirmed:
        return 0, 0.0
    # The program was measured against itself, so its ratio differs from 1 by noise alone.
    own = confirmed[0]
    itself = abs(own.ratio - 1) if np.isfinite(own.ratio) else 0.0
    noise = max(own.noise or 0.0, itself)
    best = min(confirmed, key=lambda number: confirmed[number].ratio)
    return (best if confirmed[best].ratio < 1 - noise else 0), noise
