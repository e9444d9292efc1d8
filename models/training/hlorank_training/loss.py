"""Ranking losses over lists of configurations."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class PairSettings:
    """Which pairs count, and how much, by the difference of their log run times."""

    noise: float = 0.01
    """Pairs closer than this are noise and are ignored."""
    full_weight: float = 0.1
    """Pairs further apart than this all weigh the same."""


def pairwise_logistic(scores: Tensor, runtimes: Tensor, settings: PairSettings) -> Tensor:
    """Mean logistic loss over the pairs of one list; scores f32 [c], run times i64 [c]."""
    log_runtimes = torch.log(runtimes.double()).float()
    slower = log_runtimes.unsqueeze(1) - log_runtimes.unsqueeze(0)
    weight = torch.where(slower > settings.noise, slower / settings.full_weight, 0.0).clamp(max=1)
    margins = scores.unsqueeze(1) - scores.unsqueeze(0)
    loss = torch.nn.functional.softplus(-margins) * weight
    return loss.sum() / weight.sum().clamp(min=1e-6)
