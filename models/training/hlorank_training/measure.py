"""Run times of alternatives, measured so that drift and noise hit all of them alike."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import kendalltau


@dataclass(frozen=True)
class Protocol:
    """Round-robin over all alternatives in a random order per round, after warm-ups."""

    warmups: int = 2
    rounds: int = 12
    """Rounds of each of the two passes; the label is the minimum over both."""


@dataclass(frozen=True)
class Timing:
    """Run times in nanoseconds, shape [rounds, alternatives], of two passes."""

    first: np.ndarray
    second: np.ndarray

    def label(self) -> np.ndarray:
        """The minimum over all rounds, i64 [alternatives]."""
        both = np.concatenate([self.first, self.second])
        return np.maximum(both.min(0), 2).astype(np.int64)

    def agreement(self) -> float:
        """Kendall's tau between the minima of the two passes."""
        return float(kendalltau(self.first.min(0), self.second.min(0)).statistic)

    def noise(self) -> float:
        """Median over alternatives of the relative difference between the passes' minima."""
        first, second = self.first.min(0), self.second.min(0)
        return float(np.median(np.abs(first - second) / np.minimum(first, second)))


def measure(alternatives: Sequence[Callable[[], Any]], protocol: Protocol) -> Timing:
    """Time every alternative in two passes."""
    for alternative in alternatives:
        for _ in range(protocol.warmups):
            alternative()
    random = np.random.default_rng(0)
    passes = [_rounds(alternatives, protocol.rounds, random) for _ in range(2)]
    return Timing(*passes)


def _rounds(alternatives, rounds: int, random: np.random.Generator) -> np.ndarray:
    times = np.zeros((rounds, len(alternatives)))
    for row in times:
        for index in random.permutation(len(alternatives)):
            begin = time.perf_counter_ns()
            alternatives[index]()
            row[index] = time.perf_counter_ns() - begin
    return times
