"""Predictions of candidates in the order given, and the order in which to measure them."""

from bisect import bisect_left, insort
from collections.abc import Iterable
from dataclasses import dataclass
from math import isclose

import numpy as np

from hlorank.answers.models import ModelReference, Unit
from hlorank.answers.ranking import Ranking

_SAME_SCORE = 1e-6
"""Relative difference below which the model cannot tell candidates apart."""


@dataclass(frozen=True)
class Predicted:
    """What a server predicts for candidates."""

    scores: np.ndarray
    """f64 [candidates]; lower is predicted faster"""
    unit: Unit | None
    """``seconds``, or None if scores only order candidates."""
    model: ModelReference | None
    """The model version that predicts; None if none does, but measurements alone."""
    is_learned: bool
    """Whether what was measured of this graph decides, too."""
    log_sd: np.ndarray | None
    """f64 [candidates]: standard deviations of the natural logarithms of seconds, if learned"""
    is_known: bool
    """Whether scores rest on anything at all."""


def predicted_of(ranking: Ranking) -> Predicted:
    """Converts a ranking of all candidates."""
    adaptation = ranking.adaptation
    back = np.argsort(ranking.best)
    scores = ranking.best_scores[back].astype(np.float64)
    in_logarithms = ranking.unit == "log_seconds"
    return Predicted(
        np.exp(scores) if in_logarithms else scores,
        "seconds" if in_logarithms else ranking.unit,
        ranking.model,
        adaptation is not None and adaptation.adapted,
        ranking.log_sd[back].astype(np.float64) if len(ranking.log_sd) else None,
        adaptation is not None and bool(adaptation.rests_on),
    )


def distinct_first(scores: np.ndarray, seen: Iterable[float] = ()) -> list[int]:
    """Returns the numbers of candidates by score; those with an earlier or seen score come last."""
    known = sorted(seen)
    first: list[int] = []
    alike: list[int] = []
    for number in np.argsort(scores, kind="stable").tolist():
        score = float(scores[number])
        place = bisect_left(known, score)
        is_known = any(
            isclose(score, other, rel_tol=_SAME_SCORE)
            for other in known[max(0, place - 1) : place + 1]
        )
        (alike if is_known else first).append(number)
        insort(known, score)
    return first + alike
