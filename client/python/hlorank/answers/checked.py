"""Checks answers before they are used: a faulty server or proxy may answer anything.

A small call takes the client as long as these checks do, since what runs after a wait for the
server finds no cache warm. So a ranking is checked as lists, by functions that Python has in C, and
becomes arrays when these are first used.
"""

from dataclasses import dataclass
from math import isfinite

import numpy as np

from hlorank.answers.ranking import BatchScores
from hlorank.checks.errors import AnswerError
from hlorank.wire.messages import ModelSelector, RankConfigsResponse
from hlorank.wire.words import Task


@dataclass(slots=True)
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

    def check(self, answer: RankConfigsResponse) -> None:
        """Checks that a ranking is possible. Raises AnswerError."""
        scored = answer.scored_configs
        is_partial = self.allow_partial and 0 < scored < self.configs
        if scored != self.configs and not is_partial:
            raise AnswerError(f"the server scored {scored} of {self.configs} configurations")
        best = list(answer.ranking)
        scores = list(answer.ranking_scores)
        self._check_lengths(answer, scored)
        largest = max(best, default=-1)
        if largest >= scored:
            raise AnswerError(
                f"the server's ranking contains configuration {largest}, but only {scored} were "
                "scored"
            )
        if len(set(best)) != len(best):
            raise AnswerError("the server's ranking contains a configuration twice")
        # Only then is it worth a look which values they are.
        if not all(map(isfinite, scores)):
            _check_values(np.array(scores), self.task)
        # Python finds out in one pass that a list is sorted.
        if sorted(scores) != scores:
            raise AnswerError("the server's ranking is not sorted by score")
        if self.with_scores:
            every = np.array(answer.scores, np.float32)
            _check_scores(every, scored, self.task)
            if (every[best] != np.array(scores, np.float32)).any():
                raise AnswerError("the server's ranking and its list of scores differ")
        check_model(answer.model, self.task)

    def _check_lengths(self, answer: RankConfigsResponse, scored: int) -> None:
        found = len(answer.ranking)
        expected = min(self.top_k or scored, scored)
        if found != expected:
            raise AnswerError(
                f"the server's ranking has {found} configurations instead of {expected}"
            )
        scores = len(answer.ranking_scores)
        if found != scores:
            raise AnswerError(f"the server sent {scores} scores for {found} ranked configurations")
        times, deviations = len(answer.predicted_seconds), len(answer.log_sd)
        if times not in (0, found) or deviations not in (0, times):
            raise AnswerError(
                f"the server sent {times} predicted times and {deviations} deviations "
                f"for {found} ranked configurations"
            )
        kernels = len(answer.kernels)
        explained = min(self.explain_top, found)
        if kernels != explained:
            raise AnswerError(
                f"the server sent the kernels of {kernels} configurations instead of {explained}"
            )


def check_model(model: ModelSelector, task: Task) -> None:
    """Checks that a model answered; a feature set needs none. Raises AnswerError."""
    if not model.name and task != "feature-set":
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
