"""Checks answers before they are used: a faulty server or proxy may answer anything.

A small call takes the client as long as the checks do, so each check is one pass over an array, by
methods of arrays: functions of NumPy on small arrays take several times as long.
"""

from dataclasses import dataclass

import numpy as np

from hlorank.answers.models import ModelReference
from hlorank.answers.ranking import BatchScores, Ranking
from hlorank.checks.errors import AnswerError
from hlorank.graphs.task import Task


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asked for, which its answer must contain."""

    configs: int
    """Number of configurations that were sent."""
    task: Task
    top_k: int
    """Maximum length of the ranking; 0 for all."""
    with_scores: bool = False
    allow_partial: bool = False
    explain_top: int = 0
    """Maximum number of configurations whose kernels are returned."""

    def check(self, ranking: Ranking) -> None:
        """Checks that a ranking is possible. Raises AnswerError."""
        scored = ranking.scored
        best = ranking.best_scores
        is_partial = self.allow_partial and 0 < scored < self.configs
        if scored != self.configs and not is_partial:
            raise AnswerError(f"the server scored {scored} of {self.configs} configurations")
        if ranking.scores is not None:
            _check_scores(ranking.scores, scored, self.task)
        self._check_lengths(ranking)
        _check_numbers(ranking.best, scored)
        _check_values(best, self.task)
        if (best[1:] < best[:-1]).any():
            raise AnswerError("the server's ranking is not sorted by score")
        if ranking.scores is not None and (ranking.scores[ranking.best] != best).any():
            raise AnswerError("the server's ranking and its list of scores differ")
        check_model(ranking.model, self.task)

    def _check_lengths(self, ranking: Ranking) -> None:
        found = len(ranking.best)
        expected = min(self.top_k or ranking.scored, ranking.scored)
        if found != expected:
            raise AnswerError(
                f"the server's ranking has {found} configurations instead of {expected}"
            )
        times, deviations, kernels = ranking.lengths
        if times not in (0, found) or deviations not in (0, times):
            raise AnswerError(
                f"the server sent {times} predicted times and {deviations} deviations "
                f"for {found} ranked configurations"
            )
        scores = len(ranking.best_scores)
        if found != scores:
            raise AnswerError(f"the server sent {scores} scores for {found} ranked configurations")
        explained = min(self.explain_top, found)
        if kernels != explained:
            raise AnswerError(
                f"the server sent the kernels of {kernels} configurations instead of {explained}"
            )


def check_model(model: ModelReference | None, task: Task) -> None:
    """Checks that a model answered; a feature set needs none. Raises AnswerError."""
    if model is None and task != "feature-set":
        raise AnswerError("the server's answer does not name the model")


def check_batch(batch: BatchScores, first: int, configs: int, task: Task) -> None:
    """Checks the scores of a batch of a stream. Raises AnswerError."""
    _check_scores(batch.scores, configs, task)
    if batch.first != first:
        raise AnswerError(
            f"the server's scores begin at configuration {batch.first} instead of {first}"
        )


def _check_scores(scores: np.ndarray, expected: int, task: Task) -> None:
    if len(scores) != expected:
        raise AnswerError(f"the server sent {len(scores)} scores for {expected} configurations")
    _check_values(scores, task)


def _check_values(scores: np.ndarray, task: Task) -> None:
    """Checks that scores are numbers.

    Only a fusion may have an infinite score: one of its kernels exceeds the model's limits.
    """
    is_possible = np.isfinite(scores)
    if not is_possible.all() and not (
        task == "fusion" and (is_possible | np.isposinf(scores)).all()
    ):
        raise AnswerError("the server sent a score that is not finite")


def _check_numbers(ranking: np.ndarray, scored: int) -> None:
    if not len(ranking):
        return
    largest = ranking.max()
    if largest >= scored:
        raise AnswerError(
            f"the server's ranking contains configuration {largest}, but only {scored} were scored"
        )
    is_ranked = np.zeros(scored, bool)
    is_ranked[ranking] = True
    if np.count_nonzero(is_ranked) != len(ranking):
        raise AnswerError("the server's ranking contains a configuration twice")
