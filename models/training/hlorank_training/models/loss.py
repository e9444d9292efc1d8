"""Losses over the configurations of one graph: scores f32 [c] against run times i64 [c]."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import relu, softplus

from hlorank_training.models import paper_losses

Loss = Callable[[Tensor, Tensor], Tensor]
"""Maps scores and run times to a number."""


@dataclass(frozen=True)
class LossSettings:
    """The loss function and its numbers."""

    name: str = "logistic"
    """One of ``loss_names``; those without a paper's name are our own."""
    noise: float = 0.01
    """Our pairwise losses: difference of log run times up to which a pair is ignored as noise."""
    full_weight: float = 0.1
    """Our pairwise losses: difference of log run times from which all pairs have the weight 1."""
    temperature: float = 1.0
    """``tpugraphs-list-mle``: divisor of the scores."""


def loss_names() -> list[str]:
    """Returns the names of all losses."""
    return list(_losses(LossSettings()))


def loss_of(settings: LossSettings) -> Loss:
    """Returns the loss function that the settings name."""
    losses = _losses(settings)
    if settings.name not in losses:
        raise ValueError(f"loss '{settings.name}' does not exist, expected: {', '.join(losses)}")
    return losses[settings.name]


def predicted_nanoseconds(name: str) -> Callable[[np.ndarray], np.ndarray] | None:
    """Returns the map from scores to run times in nanoseconds of models trained with a loss; None
    if the loss compares configurations, so that scores have no unit."""
    return {
        "log_mse": lambda scores: np.exp(scores) * paper_losses.NANOSECONDS_PER_MILLISECOND,
        "kaufman-log-mse": lambda scores: np.exp(scores) * paper_losses.NANOSECONDS_PER_MICROSECOND,
        "singh-relative": lambda scores: scores * paper_losses.NANOSECONDS_PER_MILLISECOND,
    }.get(name)


def _losses(settings: LossSettings) -> dict[str, Loss]:
    ours = {
        "logistic": _pairwise(softplus),
        "hinge": _pairwise(lambda margin: relu(1 + margin)),
        "list_mle": _list_mle,
        "log_mse": _log_mse,
    }
    hinge, gst_hinge = paper_losses.hinge(1), paper_losses.hinge(paper_losses.GST_MARGIN)
    return {
        **{name: partial(_with, settings, loss) for name, loss in ours.items()},
        "kaufman-hinge": partial(paper_losses.rank_mean, hinge),
        "kaufman-logistic": partial(paper_losses.rank_mean, paper_losses.logistic),
        "kaufman-log-mse": paper_losses.log_mse,
        "tgraph-hinge": partial(paper_losses.rank_sum, hinge),
        "tgraph-hinge-mean": partial(paper_losses.rank_entry_mean, hinge),
        "gst-hinge": partial(paper_losses.rank_sum, gst_hinge),
        "tpugraphs-list-mle": partial(paper_losses.list_mle, settings.temperature),
        "singh-relative": paper_losses.relative_error,
    }


def _with(settings: LossSettings, loss, scores: Tensor, runtimes: Tensor) -> Tensor:
    return loss(scores, runtimes, settings)


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
