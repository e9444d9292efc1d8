"""The search: candidates are proposed, ranked by a model and measured."""

from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any

import numpy as np

from hlorank import HlorankError
from hlorank_tune.compiler import Compiler
from hlorank_tune.confirmation import Budget, Confirmation, Measuring
from hlorank_tune.journal import Journal
from hlorank_tune.run import Listener, Progress, Run
from hlorank_tune.server import Chosen, Predictor
from hlorank_tune.subject import Outcome, Settings, Strategy, Subject

Guide = Callable[[Subject[Any]], Predictor[Any]]
"""Returns the predictor of a subject."""

_MEASURED_AT_ONCE = 8
"""Candidates per step without a model."""
_KEPT = 3
"""Number of the fastest measured candidates from which the next round of predictions starts."""
_FRUITLESS_STEPS = 1000
"""Number of consecutive steps without a new candidate after which a subject is exhausted."""
_SMALL = 0.005
"""Share of the time of all subjects below which one is left alone."""


class Search:
    """One search. ``run`` returns the result; the journal has every candidate."""

    def __init__(
        self,
        compiler: Compiler[Any],
        guide: Guide | None,
        settings: Settings,
        journal: Journal,
        listener: Listener = lambda _: None,
        clock: Callable[[], float] = monotonic,
    ):
        """Without ``guide``, the search is by measurements alone.

        Raises:
            JournalError: if a row of the journal belongs to something else.
        """
        run = Run(
            compiler.program,
            compiler.task,
            settings.with_model,
            compiler.reference,
            compiler.whole.written(compiler.whole.default),
            compiler.default_name,
        )
        self._compiler = compiler
        self._guide = guide
        self._settings = settings
        self._random = np.random.default_rng(settings.seed)
        self._progress = Progress(run, journal, listener)
        self._budget = Budget(settings.seconds, self._progress.spent, clock)
        self._progress.clock = self._budget.spent
        self._measuring = Measuring(compiler, self._progress, self._budget)
        self._known: dict[tuple[str, Any], Outcome] = {}
        self._strategies: dict[str, Strategy[Any]] = {}

    def run(self) -> Run:
        """Searches until a limit is reached, then measures the best candidates again.

        Raises:
            HlorankError: if the program does not run as it is.
            ServerError: if the server does not rank the program, before anything is measured.
        """
        run = self._progress.run
        if run.measurements:
            self._progress.show()
        if not run.is_complete:
            if not run.parts:
                self._search()
            Confirmation(self._compiler, self._progress, self._measuring).run()
        return run

    def _search(self) -> None:
        subjects = list(self._compiler.subjects(self._progress.show))
        for subject in subjects:
            # What was measured before the search was stopped.
            for measurement in self._progress.run.of(subject.name):
                candidate = self._progress.read(subject, measurement)
                self._known[self._key(subject, candidate)] = measurement.outcome
        self._begin(subjects)
        for subject in subjects:
            first = [subject.reference, subject.default]
            predictor = self._predictor(subject)
            if predictor is not None and self._left(subject) > len(first):
                # What earlier searches found.
                first += predictor.earlier()[: self._left(subject) - len(first)]
            # The time may be over, but without the program itself there is no result.
            if subject is subjects[0] or self._left(subject):
                self._measure(subject, self._new(subject, first))
        subjects = self._worthwhile(subjects)
        self._rounds(subjects)
        for predictor in filter(None, map(self._predictor, subjects)):
            predictor.finish()
        self._progress.leave_alone(self._compiler.left_alone())

    def _begin(self, subjects: Sequence[Subject[Any]]) -> None:
        """Asks the server for a prediction, and teaches it what an earlier process measured."""
        ranked = [subject for subject in subjects if self._predictor(subject) is not None]
        # Measuring takes minutes, so a server that refuses the program is an error before.
        if ranked and self._left(ranked[0]):
            self._progress.show("predicting: asks the server for one score")
            self._predictor(ranked[0]).check()
            for subject in ranked:
                measured = self._progress.run.of(subject.name)
                if measured:
                    read = [subject.read(measurement.candidate) for measurement in measured]
                    self._predictor(subject).learn(read, [m.outcome for m in measured])

    def _worthwhile(self, subjects: list[Subject[Any]]) -> list[Subject[Any]]:
        """Returns the subjects by the time that they take; the others are left alone."""
        times: dict[str, float] = {}
        for subject in subjects:
            first = [m.outcome.reference for m in self._progress.run.of(subject.name)]
            times[subject.name] = subject.calls * float(next(filter(None, first), 0))
        least = _SMALL * sum(times.values())
        small = {name: "too short to matter" for name, time in times.items() if time < least}
        self._progress.leave_alone(small)
        kept = [subject for subject in subjects if subject.name not in small]
        return sorted(kept, key=lambda subject: -times[subject.name])

    def _rounds(self, subjects: Sequence[Subject[Any]]) -> None:
        """Measures in rounds over all subjects, so that a time limit stops them alike."""
        waiting = [subject for subject in subjects if self._left(subject)]
        while waiting:
            # A search that was continued first does what others are ahead by.
            fewest = min(self._counted(subject) for subject in waiting)
            turn = [s for s in waiting if self._counted(s) < fewest + self._settings.top_k]
            exhausted = [s for s in turn if self._left(s) and not self._round(s)]
            waiting = [s for s in waiting if s not in exhausted and self._left(s)]

    def _round(self, subject: Subject[Any]) -> bool:
        """Measures the next candidates of a subject; returns False if it has no more."""
        predictor = self._predictor(subject)
        if predictor is None or subject.is_shared:
            return self._round_by_measuring(subject)
        chosen = self._best_predicted(subject, predictor)
        # The time limit may have been reached during the predictions.
        left = self._left(subject)
        self._measure(subject, chosen.candidates[:left], chosen.scores[:left], chosen.unit)
        return len(chosen.candidates) > 0

    def _round_by_measuring(self, subject: Subject[Any]) -> bool:
        strategy = self._strategies.get(subject.name)
        if strategy is None:
            steps = self._settings.measurements // _MEASURED_AT_ONCE
            predictor = self._predictor(subject)
            start = [subject.reference, *(predictor.earlier() if predictor else ())]
            strategy = subject.strategy(
                self._settings, self._random, _MEASURED_AT_ONCE, steps, start
            )
            self._strategies[subject.name] = strategy
        for _ in range(_FRUITLESS_STEPS):
            asked = strategy.ask()
            if not len(asked):
                return False
            new = self._new(subject, asked)
            # Random candidates repeat each other in a small space, which is then exhausted.
            is_fruitful = len(new) > 0
            while new and (left := self._left(subject)):
                self._measure(subject, new[:left])
                new = new[left:]
            # The strategy learns again of those that were measured before, and not of the rest.
            known = [c for c in asked if self._key(subject, c) in self._known]
            if known:
                costs = [self._known[self._key(subject, c)].ratio for c in known]
                strategy.update(known, np.array(costs))
            if is_fruitful:
                return True
        return False

    def _best_predicted(self, subject: Subject[Any], predictor: Predictor[Any]) -> Chosen:
        """Returns the next candidates to measure.

        If the model fails, these are the strategy's next candidates, without scores.
        """
        begin = self._budget.spent()
        count = min(self._settings.top_k, self._left(subject))
        batch_size = subject.predicted_at_once
        steps = -(-self._settings.predictions // batch_size)
        fastest = self._progress.run.fastest(subject.name)[:_KEPT]
        read = [subject.read(measurement.candidate) for measurement in fastest]
        start = {subject.key(candidate): candidate for candidate in [subject.reference, *read]}
        strategy = subject.strategy(
            self._settings, self._random, batch_size, steps, list(start.values())
        )
        found: list[Any] = []
        batch: Sequence[Any] = ()
        asked = 0

        def note(more: dict[str, Any]) -> None:
            took = round(self._budget.spent() - begin, 3)
            self._progress.write({"predictions": asked, **more, "took": took})
            self._progress.show()

        try:
            while asked < self._settings.predictions and self._left(subject):
                batch = strategy.ask()
                if not len(batch):
                    break
                of = f" of {subject.name}" if subject.name else ""
                done = f"{asked:,} of {self._settings.predictions:,} done"
                self._progress.show(f"predicting{of}: {done}")
                scores = predictor.scores(batch, max(1.0, self._budget.for_search()))
                strategy.update(batch, scores)
                asked += len(batch)
                # An infinite score means that the model has no prediction.
                found += [c for c, score in zip(batch, scores, strict=True) if np.isfinite(score)]
            seconds = max(1.0, self._budget.for_search())
            chosen = predictor.choose(self._new(subject, found), count, seconds)
        except HlorankError as error:
            note({"error": str(error)})
            # Continues with the candidates that the model should have scored.
            new = self._new(subject, batch)
            for _ in range(_FRUITLESS_STEPS):
                if new or not len(batch):
                    break
                batch = strategy.ask()
                new = self._new(subject, batch)
            return Chosen(new[:count], [None] * len(new[:count]), None)
        note({})
        return chosen

    def _new(self, subject: Subject[Any], candidates: Sequence[Any]) -> list[Any]:
        """Returns the distinct candidates that were not measured yet."""
        found = {self._key(subject, candidate): candidate for candidate in candidates}
        return [candidate for key, candidate in found.items() if key not in self._known]

    def _key(self, subject: Subject[Any], candidate: Any) -> tuple[str, Any]:
        return subject.name, subject.key(candidate)

    def _predictor(self, subject: Subject[Any]) -> Predictor[Any] | None:
        is_ranked = self._guide is not None and subject.graph is not None
        return self._guide(subject) if is_ranked and self._guide else None

    def _counted(self, subject: Subject[Any]) -> int:
        """Returns the number of measurements that are limited."""
        return sum(map(self._compiler.counts, self._progress.run.of(subject.name)))

    def _left(self, subject: Subject[Any]) -> int:
        """Returns how many candidates of a subject may still be measured."""
        left = self._settings.measurements - self._counted(subject)
        return self._budget.fits(max(0, left))

    def _measure(
        self,
        subject: Subject[Any],
        candidates: Sequence[Any],
        scores: Sequence[float | None] | None = None,
        unit: str | None = None,
    ) -> None:
        """Measures new candidates, and passes the outcomes on to the server."""
        if not len(candidates):
            return
        outcomes = self._measuring(subject, candidates)
        scored = scores or [None] * len(candidates)
        for candidate, outcome, score in zip(candidates, outcomes, scored, strict=True):
            self._known[self._key(subject, candidate)] = outcome
            self._progress.add(subject, candidate, outcome, score, unit)
        self._progress.show()
        predictor = self._predictor(subject)
        if predictor is not None:
            predictor.learn(candidates, outcomes)
