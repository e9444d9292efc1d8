"""How well scores rank configurations: the metrics of TpuGraphs."""

from math import comb

import numpy as np
from scipy.stats import kendalltau


def kendall_tau(scores: np.ndarray, runtimes: np.ndarray) -> float:
    """Kendall's tau-b; 0 where a side is constant."""
    tau = float(kendalltau(scores, runtimes).statistic)
    return 0.0 if np.isnan(tau) else tau


def ordered_pair_accuracy(scores: np.ndarray, runtimes: np.ndarray) -> float:
    """Share of pairs with different run times whose scores have the same order; ties are wrong."""
    slower = runtimes[:, None] > runtimes[None, :]
    higher = scores[:, None] > scores[None, :]
    return float((slower & higher).sum() / max(slower.sum(), 1))


def top_slowdown(scores: np.ndarray, runtimes: np.ndarray, count: int) -> float:
    """How much slower than the best of all the best of the ``count`` lowest scores is."""
    best = np.lexsort((np.arange(len(scores)), scores))[:count]
    return float(runtimes[best].min() / runtimes.min() - 1)


def random_slowdown(runtimes: np.ndarray, count: int) -> float:
    """The expected top slowdown of a random choice without repetition."""
    ascending = np.sort(runtimes).astype(float)
    total, count = len(ascending), min(count, len(ascending))
    chances = [comb(total - 1 - i, count - 1) / comb(total, count) for i in range(total)]
    return float(np.dot(chances, ascending) / ascending[0] - 1)
