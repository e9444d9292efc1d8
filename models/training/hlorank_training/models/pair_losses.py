"""Losses over the pairs and the run times of one graph: scores f32 [c] against run times [c]."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import softplus

NANOSECONDS_PER_MILLISECOND = 1e6

Phi = Callable[[Tensor], Tensor]
"""Cost of the slower's score minus the faster's."""


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


def relative_error(scores: Tensor, runtimes: Tensor, deviation: Tensor | float = 1.0) -> Tensor:
    """Mean of the relative error, times the best run time over the measured one, divided by the
    ``deviation`` of its repetitions (Singh 2021 section IV); scores are milliseconds."""
    measured = runtimes.to(scores.dtype) / NANOSECONDS_PER_MILLISECOND
    weight = measured.amin() / measured / deviation
    return ((scores / measured - 1).abs() * weight).mean()
