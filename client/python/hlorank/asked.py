"""Checks answers before they are used: a faulty server or proxy may answer anything."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hlorank.errors import AnswerError
from hlorank.model import ModelReference
from hlorank.ranking import BatchScores, Ranking
from hlorank.task import Task


@dataclass(frozen=True)
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
        self._check_scored(ranking.scored)
        if self.with_scores:
            _check_scores(ranking.scores, ranking.scored, self.task)
        self._check_length(ranking)
        _check_numbers(ranking.best, ranking.scored)
        _check_values(ranking.best_scores, self.task)
        self._check_kernels(ranking)
        if np.any(ranking.best_scores[1:] < ranking.best_scores[:-1]):
            raise AnswerError("the server's ranking is not sorted by score")
        if self.with_scores and not np.array_equal(
            ranking.scores[ranking.best], ranking.best_scores
        ):
            raise AnswerError("the server's ranking and its list of scores differ")
        check_model(ranking.model, self.task)

    def _check_kernels(self, ranking: Ranking) -> None:
        found = len(ranking.kernels)
        expected = min(self.explain_top, len(ranking.best))
        if found != expected:
            raise AnswerError(
                f"the server sent the kernels of {found} configurations instead of {expected}"
            )

    def _check_scored(self, scored: int) -> None:
        is_partial = self.allow_partial and 0 < scored < self.configs
        if scored != self.configs and not is_partial:
            raise AnswerError(f"the server scored {scored} of {self.configs} configurations")

    def _check_length(self, ranking: Ranking) -> None:
        found = len(ranking.best)
        scores = len(ranking.best_scores)
        expected = min(self.top_k or ranking.scored, ranking.scored)
        if found != expected:
            raise AnswerError(
                f"the server's ranking has {found} configurations instead of {expected}"
            )
        times = len(ranking.predicted_seconds)
        deviations = len(ranking.log_sd)
        if times not in (0, found) or deviations not in (0, times):
            raise AnswerError(
                f"the server sent {times} predicted times and {deviations} deviations "
                f"for {found} ranked configurations"
            )
        if found != scores:
            raise AnswerError(f"the server sent {scores} scores for {found} ranked configurations")


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


def _check_scores(scores: Any, expected: int, task: Task) -> None:
    if len(scores) != expected:
        raise AnswerError(f"the server sent {len(scores)} scores for {expected} configurations")
    _check_values(scores, task)


def _check_values(scores: np.ndarray, task: Task) -> None:
    """Checks that scores are numbers.

    Only a fusion may have an infinite score: one of its kernels exceeds the model's limits.
    """
    if not np.all(np.isfinite(scores) | (task == "fusion") & np.isposinf(scores)):
        raise AnswerError("the server sent a score that is not finite")


def _check_numbers(ranking: np.ndarray, scored: int) -> None:
    if np.any(ranking >= scored):
        raise AnswerError(
            f"the server's ranking contains configuration {ranking.max()}, "
            f"but only {scored} were scored"
        )
    is_ranked = np.zeros(scored, bool)
    is_ranked[ranking] = True
    if np.count_nonzero(is_ranked) != len(ranking):
        raise AnswerError("the server's ranking contains a configuration twice")
