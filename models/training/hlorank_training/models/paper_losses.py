"""The losses of the papers, literally: scores f32 [c] against run times [c] of one graph."""

from collections.abc import Callable
from math import log

import torch
from torch import Tensor
from torch.nn.functional import relu, softplus

GST_MARGIN = 0.1
"""Margin of TpuGraphs' Graph Segment Training."""
NANOSECONDS_PER_MICROSECOND, NANOSECONDS_PER_MILLISECOND = 1e3, 1e6

Phi = Callable[[Tensor], Tensor]


def hinge(margin: float) -> Phi:
    """Returns max(0, margin - z) of the slower's score minus the faster's, z."""
    return lambda difference: relu(margin - difference)


def logistic(difference: Tensor) -> Tensor:
    """Returns ln(1 + exp(-z))."""
    return softplus(-difference)


def rank_sum(phi: Phi, scores: Tensor, runtimes: Tensor) -> Tensor:
    """Sum of ``phi`` over the pairs of different run times (TGraph equation 8)."""
    slower = runtimes.unsqueeze(1) > runtimes.unsqueeze(0)
    return torch.where(slower, phi(scores.unsqueeze(1) - scores.unsqueeze(0)), 0.0).sum()


def rank_mean(phi: Phi, scores: Tensor, runtimes: Tensor) -> Tensor:
    """The sum over the n(n-1)/2 pairs, divided by their number (Kaufman 2021 equation 1)."""
    count = len(scores)
    return rank_sum(phi, scores, runtimes) / max(count * (count - 1) / 2, 1)


def rank_entry_mean(phi: Phi, scores: Tensor, runtimes: Tensor) -> Tensor:
    """The sum divided by all n x n entries, as TGraph's code does."""
    return rank_sum(phi, scores, runtimes) / len(scores) ** 2


def list_mle(temperature: float, scores: Tensor, runtimes: Tensor) -> Tensor:
    """Negative log likelihood of the order, slowest first (TpuGraphs); ties in random order."""
    shuffled = torch.randperm(len(runtimes))
    order = shuffled[torch.argsort(runtimes[shuffled], descending=True, stable=True)]
    ordered = scores[order] / temperature
    remaining = torch.logcumsumexp(ordered.flip(0), 0).flip(0)
    return (remaining - ordered).sum()


def log_mse(scores: Tensor, runtimes: Tensor) -> Tensor:
    """Mean squared error of the logarithm of the run time in microseconds (Kaufman 2021)."""
    times = torch.log(runtimes.double()).float() - log(NANOSECONDS_PER_MICROSECOND)
    return ((scores - times) ** 2).mean()


def relative_error(scores: Tensor, runtimes: Tensor, deviation: Tensor | float = 1.0) -> Tensor:
    """Mean of the relative error, times the best run time over the measured one, divided by the
    ``deviation`` of its repetitions (Singh 2021 section IV); scores are milliseconds."""
    measured = runtimes.to(scores.dtype) / NANOSECONDS_PER_MILLISECOND
    weight = measured.amin() / measured / deviation
    return ((scores / measured - 1).abs() * weight).mean()
