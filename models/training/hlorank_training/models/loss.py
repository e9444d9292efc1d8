"""Losses over the configurations of one graph: scores f32 [c] against run times [c].

The papers' losses follow them literally.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import relu, softplus

Loss = Callable[[Tensor, Tensor], Tensor]
"""Maps scores and run times to a number."""
Phi = Callable[[Tensor], Tensor]
"""Cost of the slower's score minus the faster's."""

GST_MARGIN = 0.1
"""Margin of TpuGraphs' Graph Segment Training."""


@dataclass(frozen=True)
class LossSettings:
    """The loss function and its numbers."""

    name: str = "logistic"
    """One of ``LOSSES``."""
    noise: float = 0.01
    """``logistic``: difference of log run times up to which a pair is ignored as noise."""
    full_weight: float = 0.1
    """``logistic``: difference of log run times from which all pairs have the weight 1."""
    temperature: float = 1.0
    """``tpugraphs-list-mle``: divisor of the scores."""

    def function(self) -> Loss:
        """Returns the loss that the settings name."""
        return LOSSES[self.name](self)


def _weighted_logistic(settings: LossSettings) -> Loss:
    """Mean logistic cost of the faster's score minus the slower's over pairs (TpuGraphs section
    4), weighted by how different their run times are."""

    def loss(scores: Tensor, runtimes: Tensor) -> Tensor:
        times = torch.log(runtimes.double()).float()
        slower = times.unsqueeze(1) - times.unsqueeze(0)
        weight = torch.where(slower > settings.noise, slower / settings.full_weight, 0.0)
        weight = weight.clamp(max=1)
        margins = scores.unsqueeze(0) - scores.unsqueeze(1)
        return (softplus(margins) * weight).sum() / weight.sum().clamp(min=1e-6)

    return loss


def _list_mle(settings: LossSettings) -> Loss:
    """Negative log likelihood of the order, slowest first; ties in random order (TpuGraphs)."""

    def loss(scores: Tensor, runtimes: Tensor) -> Tensor:
        shuffled = torch.randperm(len(runtimes))
        order = shuffled[torch.argsort(runtimes[shuffled], descending=True, stable=True)]
        ordered = scores[order] / settings.temperature
        remaining = torch.logcumsumexp(ordered.flip(0), 0).flip(0)
        return (remaining - ordered).sum()

    return loss


def logistic(difference: Tensor) -> Tensor:
    """Returns ln(1 + exp(-z))."""
    return softplus(-difference)


def hinge(margin: float) -> Phi:
    """Returns max(0, margin - z)."""
    return lambda difference: relu(margin - difference)


def rank_sum(phi: Phi, scores: Tensor, runtimes: Tensor) -> Tensor:
    """Sum of ``phi`` over the pairs of different run times (TGraph equation 8)."""
    slower = runtimes.unsqueeze(1) > runtimes.unsqueeze(0)
    return torch.where(slower, phi(scores.unsqueeze(1) - scores.unsqueeze(0)), 0.0).sum()


def rank_mean(phi: Phi, scores: Tensor, runtimes: Tensor) -> Tensor:
    """The sum over the n(n-1)/2 pairs, divided by their number (Kaufman 2021 equation 1)."""
    count = len(scores)
    return rank_sum(phi, scores, runtimes) / max(count * (count - 1) / 2, 1)


LOSSES: dict[str, Callable[[LossSettings], Loss]] = {
    "logistic": _weighted_logistic,
    "kaufman-hinge": lambda _: lambda s, t: rank_mean(hinge(1), s, t),
    # TGraph's code divides by all n x n entries.
    "tgraph-hinge-mean": lambda _: lambda s, t: rank_sum(hinge(1), s, t) / len(s) ** 2,
    "gst-hinge": lambda _: lambda s, t: rank_sum(hinge(GST_MARGIN), s, t),
    "tpugraphs-list-mle": _list_mle,
}
