"""Trains a model of the run times of kernels."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import mean

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from hlorank_training.data.kernels import KernelData, MeasuredKernel
from hlorank_training.models.kernel_batch import blocks, make_batch
from hlorank_training.models.kernel_time import KernelTimeModel, KernelTimeSettings
from hlorank_training.models.steps import OneCycleSettings, seeded, train_one_cycle

_SHORT = 2_000.0
"""Nanoseconds below which a kernel counts less, since the call of a kernel is most of its time."""
_SHORT_WEIGHT = 0.3


@dataclass(frozen=True)
class KernelTraining(OneCycleSettings):
    """Hyperparameters of a training."""

    epochs: int = 30
    weight_decay: float = 0.02
    averaging: float = 0.995
    orders: int = 2
    """Different compositions of the steps, which epochs take in turn."""
    block_nodes: int = 2048
    """Nodes of a step, padding included."""
    linear_from: float = 0.7
    """Difference of logarithms from which the squared error goes on linearly, so that single
    kernels that no feature explains do not decide."""


def train_kernels(
    data: KernelData, numbers: np.ndarray, settings: KernelTimeSettings, training: KernelTraining
) -> tuple[KernelTimeModel, list[dict[str, float]]]:
    """Trains on the kernels of these numbers; returns the model and the loss of every epoch."""
    random = seeded(training.seed)
    kernels = [data.kernels[number] for number in numbers]
    model = KernelTimeModel(settings)
    model.encoder.fit(kernels)
    weights = kernel_weights(kernels)
    logarithms = torch.tensor([kernel.nanoseconds for kernel in kernels]).float().log()
    permutations = [random.permutation(len(kernels)) for _ in range(training.orders)]
    # All kernels in batches with their work, which training does not change.
    orders = [
        [
            (batch := make_batch(kernels, block), model.encoder.work(batch))
            for block in blocks(kernels, order, training.block_nodes)
        ]
        for order in permutations
    ]

    def losses(epoch: int) -> Iterator[Tensor]:
        prepared = orders[epoch % len(orders)]
        for place in random.permutation(len(prepared)):
            batch, work = prepared[place]
            errors = F.huber_loss(
                model(batch, work),
                logarithms[batch.numbers],
                reduction="none",
                delta=training.linear_from,
            )
            yield (weights[batch.numbers] * errors).mean()

    steps = sum(len(orders[epoch % len(orders)]) for epoch in range(training.epochs))
    return train_one_cycle(model, training, steps, losses)


def kernel_weights(kernels: Sequence[MeasuredKernel]) -> Tensor:
    """Returns how much every kernel counts, 1 in the mean.

    A family of n kernels counts as the root of n, and short kernels count less.
    """
    counts: dict[str, int] = {}
    for kernel in kernels:
        for family in kernel.families:
            counts[family] = counts.get(family, 0) + 1
    weights = [
        mean(counts[family] ** -0.5 for family in kernel.families)
        * (_SHORT_WEIGHT if kernel.nanoseconds < _SHORT else 1.0)
        for kernel in kernels
    ]
    return torch.tensor(weights) / mean(weights)
