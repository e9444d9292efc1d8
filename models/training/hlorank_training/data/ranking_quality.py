"""Metrics of ranking quality, as in TpuGraphs."""

from math import comb

import numpy as np
from scipy.stats import kendalltau


def kendall_tau(scores: np.ndarray, runtimes: np.ndarray) -> float:
    """Returns Kendall's tau-b; 0 if one side is constant."""
    tau = float(kendalltau(scores, runtimes).statistic)
    return 0.0 if np.isnan(tau) else tau


def ordered_pair_accuracy(scores: np.ndarray, runtimes: np.ndarray) -> float:
    """Returns the share of pairs of different run times whose scores have the same order.

    Equal scores count as wrong.
    """
    slower = runtimes[:, None] > runtimes[None, :]
    higher = scores[:, None] > scores[None, :]
    return float((slower & higher).sum() / max(slower.sum(), 1))


def top_choices(scores: np.ndarray, count: int) -> np.ndarray:
    """Returns the indices of the ``count`` lowest scores, the lowest first and ties by index."""
    return np.lexsort((np.arange(len(scores)), scores))[:count]


def top_slowdown(scores: np.ndarray, runtimes: np.ndarray, count: int) -> float:
    """Returns the slowdown of the best of the ``count`` lowest scores, relative to the best."""
    best = top_choices(scores, count)
    return float(runtimes[best].min() / runtimes.min() - 1)


def random_slowdown(runtimes: np.ndarray, count: int) -> float:
    """Returns the expected top slowdown of a random choice without repetition."""
    ascending = np.sort(runtimes).astype(float)
    total = len(ascending)
    count = min(count, len(ascending))
    chances = [comb(total - 1 - i, count - 1) / comb(total, count) for i in range(total)]
    return float(np.dot(chances, ascending) / ascending[0] - 1)
