"""Losses over the configurations of one graph: scores f32 [c] against run times i64 [c]."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import relu, softplus

Loss = Callable[[Tensor, Tensor], Tensor]
"""Maps scores and run times to a number."""


@dataclass(frozen=True)
class LossSettings:
    """The loss function and its numbers."""

    name: str = "logistic"
    """One of ``LOSSES``."""
    noise: float = 0.01
    """Pairwise losses: difference of log run times up to which a pair is ignored as noise."""
    full_weight: float = 0.1
    """Pairwise losses: difference of log run times from which all pairs have the weight 1."""

    def function(self) -> Loss:
        """Returns the loss that the settings name.

        Raises:
            ValueError: if it does not exist.
        """
        if self.name not in LOSSES:
            known = ", ".join(LOSSES)
            raise ValueError(f"loss '{self.name}' does not exist, expected: {known}")
        return LOSSES[self.name](self)


def _pairwise(cost: Callable[[Tensor], Tensor]) -> Callable[[LossSettings], Loss]:
    """Mean cost of the faster's score minus the slower's over pairs (TpuGraphs section 4)."""

    def with_settings(settings: LossSettings) -> Loss:
        def loss(scores: Tensor, runtimes: Tensor) -> Tensor:
            times = _log(runtimes)
            slower = times.unsqueeze(1) - times.unsqueeze(0)
            weight = torch.where(slower > settings.noise, slower / settings.full_weight, 0.0)
            weight = weight.clamp(max=1)
            margins = scores.unsqueeze(0) - scores.unsqueeze(1)
            return (cost(margins) * weight).sum() / weight.sum().clamp(min=1e-6)

        return loss

    return with_settings


def _log(runtimes: Tensor) -> Tensor:
    return torch.log(runtimes.double()).float()


def _list_mle(scores: Tensor, runtimes: Tensor) -> Tensor:
    """Negative log likelihood of the true order, slowest first, per configuration."""
    ordered = scores[torch.argsort(runtimes, descending=True, stable=True)]
    remaining = torch.logcumsumexp(ordered.flip(0), 0).flip(0)
    return (remaining - ordered).mean()


def _log_mse(scores: Tensor, runtimes: Tensor) -> Tensor:
    """Squared error of the logarithm of the run time in milliseconds: absolute run times."""
    return ((scores - (_log(runtimes) - 6 * torch.log(torch.tensor(10.0)))) ** 2).mean()


LOSSES: dict[str, Callable[[LossSettings], Loss]] = {
    "logistic": _pairwise(softplus),
    "hinge": _pairwise(lambda margin: relu(1 + margin)),
    "list_mle": lambda _: _list_mle,
    "log_mse": lambda _: _log_mse,
}
"""By name; the settings are those of the pairwise losses."""
