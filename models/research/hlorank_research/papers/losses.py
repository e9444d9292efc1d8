"""The losses of the papers, literally: scores f32 [c] against run times [c] of one graph."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import log

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import relu

from hlorank_training.models.loss import LOSSES, Loss, LossSettings
from hlorank_training.models.pair_losses import (
    NANOSECONDS_PER_MILLISECOND,
    Phi,
    logistic,
    rank_mean,
    rank_sum,
    relative_error,
)

GST_MARGIN = 0.1
"""Margin of TpuGraphs' Graph Segment Training."""
NANOSECONDS_PER_MICROSECOND = 1e3


def hinge(margin: float) -> Phi:
    """Returns max(0, margin - z) of the slower's score minus the faster's, z."""
    return lambda difference: relu(margin - difference)


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


PAPER_LOSSES: dict[str, Loss] = {
    "kaufman-hinge": partial(rank_mean, hinge(1)),
    "kaufman-logistic": partial(rank_mean, logistic),
    "kaufman-log-mse": log_mse,
    "tgraph-hinge": partial(rank_sum, hinge(1)),
    "tgraph-hinge-mean": partial(rank_entry_mean, hinge(1)),
    "gst-hinge": partial(rank_sum, hinge(GST_MARGIN)),
    "singh-relative": relative_error,
}
LIST_MLE = "tpugraphs-list-mle"
"""The loss that has a temperature."""


@dataclass(frozen=True)
class PaperLoss(LossSettings):
    """A paper's loss, or one of our own, by its name."""

    temperature: float = 1.0
    """``tpugraphs-list-mle``: divisor of the scores."""

    def function(self) -> Loss:
        """Returns the loss that the settings name."""
        if self.name == LIST_MLE:
            return partial(list_mle, self.temperature)
        return PAPER_LOSSES.get(self.name) or super().function()


def loss_names() -> list[str]:
    """Returns the names of all losses."""
    return [*LOSSES, *PAPER_LOSSES, LIST_MLE]


def predicted_nanoseconds(name: str) -> Callable[[np.ndarray], np.ndarray] | None:
    """Returns the map from scores to run times in nanoseconds of models trained with a loss; None
    if the loss compares configurations, so that scores have no unit."""
    return {
        "log_mse": lambda scores: np.exp(scores) * NANOSECONDS_PER_MILLISECOND,
        "kaufman-log-mse": lambda scores: np.exp(scores) * NANOSECONDS_PER_MICROSECOND,
        "singh-relative": lambda scores: scores * NANOSECONDS_PER_MILLISECOND,
    }.get(name)
