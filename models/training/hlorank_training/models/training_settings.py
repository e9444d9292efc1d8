"""Hyperparameters of a training."""

from collections.abc import Callable
from dataclasses import dataclass, field

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


@dataclass(frozen=True)
class TrainSettings:
    """Hyperparameters of a training."""

    seed: int = 1
    epochs: int = 200
    minutes: float = 6.0
    optimizer: str = "adamw"
    """``adamw`` or ``adam``"""
    learning_rate: float = 1e-3
    decay: float | None = None
    """Factor of the learning rate per epoch; if None, a cosine takes it to 0 over ``epochs``."""
    warm_up: float = 0.0
    """Share of the epochs in which the learning rate first rises linearly."""
    weight_decay: float = 0.02
    clip: float | None = 1.0
    """Maximum norm of the gradient, if any."""
    averaging: float = 0.98
    """Decay of the moving average of the weights per step; the average is the trained model."""
    graphs_per_step: int = 2
    configurations_per_graph: int = 32
    even_families: bool = False
    """Whether a step draws the family of each graph first, and then a graph of it, so that large
    families do not count more (Kaufman 2021, section 4: examples evenly from each model type)."""
    repeated: str = "mean"
    """Run time of a configuration that was measured repeatedly: ``mean`` or ``smallest``."""
    patience: int = 25
    """Maximum epochs without a better validation tau."""
    loss: LossSettings = field(default_factory=LossSettings)
