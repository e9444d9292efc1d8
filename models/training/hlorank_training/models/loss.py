"""Losses over the configurations of one graph: scores f32 [c] against run times i64 [c]."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import relu, softplus


@dataclass(frozen=True)
class LossSettings:
    """The loss function, and for pairwise losses the weights of pairs."""

    name: str = "logistic"
    """``logistic``, ``hinge``, ``list_mle`` or ``log_mse``"""
    noise: float = 0.01
    """Difference of log run times up to which a pair is ignored as noise."""
    full_weight: float = 0.1
    """Difference of log run times from which all pairs have the weight 1."""


def loss_of(settings: LossSettings) -> Callable[[Tensor, Tensor], Tensor]:
    """Returns the loss function that the settings name."""
    losses = {
        "logistic": _pairwise(softplus),
        "hinge": _pairwise(lambda margin: relu(1 + margin)),
        "list_mle": _list_mle,
        "log_mse": _log_mse,
    }
    if settings.name not in losses:
        raise ValueError(f"loss '{settings.name}' does not exist, expected: {', '.join(losses)}")
    loss = losses[settings.name]
    return lambda scores, runtimes: loss(scores, runtimes, settings)


def _log(runtimes: Tensor) -> Tensor:
    return torch.log(runtimes.double()).float()


def _pairwise(cost: Callable[[Tensor], Tensor]):
    """Mean cost of the faster's score minus the slower's over pairs (TpuGraphs section 4)."""

    def loss(scores: Tensor, runtimes: Tensor, settings: LossSettings) -> Tensor:
        times = _log(runtimes)
        slower = times.unsqueeze(1) - times.unsqueeze(0)
        weight = torch.where(slower > settings.noise, slower / settings.full_weight, 0.0)
        weight = weight.clamp(max=1)
        margins = scores.unsqueeze(0) - scores.unsqueeze(1)
        return (cost(margins) * weight).sum() / weight.sum().clamp(min=1e-6)

    return loss


def _list_mle(scores: Tensor, runtimes: Tensor, _: LossSettings) -> Tensor:
    """Negative log likelihood of the true order, slowest first, per configuration."""
    ordered = scores[torch.argsort(runtimes, descending=True, stable=True)]
    remaining = torch.logcumsumexp(ordered.flip(0), 0).flip(0)
    return (remaining - ordered).mean()


def _log_mse(scores: Tensor, runtimes: Tensor, _: LossSettings) -> Tensor:
    """Squared error of the logarithm of the run time in milliseconds: absolute run times."""
    return ((scores - (_log(runtimes) - 6 * torch.log(torch.tensor(10.0)))) ** 2).mean()
