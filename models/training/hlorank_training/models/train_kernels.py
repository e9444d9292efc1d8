"""Trains a model of the run times of kernels."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import mean

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from tqdm import tqdm

from hlorank_training.data.kernels import KernelData, MeasuredKernel
from hlorank_training.models.kernel_batch import KernelBatch, blocks, make_batch
from hlorank_training.models.kernel_time import KernelTimeModel, KernelTimeSettings
from hlorank_training.models.kernel_work import Work

_SHORT = 2_000.0
"""Nanoseconds below which a kernel counts less, since the call of a kernel is most of its time."""
_SHORT_WEIGHT = 0.3


@dataclass(frozen=True)
class KernelTraining:
    """Hyperparameters of a training."""

    seed: int = 1
    epochs: int = 30
    learning_rate: float = 2e-3
    weight_decay: float = 0.02
    warm_up: float = 0.15
    """Share of the steps in which the learning rate rises."""
    clip: float = 1.0
    averaging: float = 0.995
    """Decay of the moving average of the weights per step; the average is the trained model."""
    orders: int = 2
    """Different compositions of the steps, which epochs take in turn."""
    block_nodes: int = 2048
    """Nodes of a step, padding included."""
    linear_from: float = 0.7
    """Difference of logarithms from which the squared error goes on linearly, so that single
    kernels that no feature explains do not decide."""


def train_kernels(
    data: KernelData,
    numbers: np.ndarray,
    settings: KernelTimeSettings,
    training: KernelTraining,
    model_class: type[KernelTimeModel] = KernelTimeModel,
) -> tuple[KernelTimeModel, list[dict[str, float]]]:
    """Trains on the kernels of these numbers; returns the model and the loss of every epoch."""
    torch.manual_seed(training.seed)
    torch.set_num_threads(1)
    kernels = [data.kernels[number] for number in numbers]
    model = model_class(settings)
    model.encoder.fit(kernels)
    trainer = _Trainer(model, kernels, training)
    history = []
    with tqdm(range(training.epochs), desc="epochs") as epochs:
        for epoch in epochs:
            history.append({"epoch": epoch, "loss": trainer.epoch(epoch)})
            epochs.set_postfix(loss=f"{history[-1]['loss']:.4f}")
    return trainer.average.module.eval(), history


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


class _Trainer:
    def __init__(
        self, model: KernelTimeModel, kernels: Sequence[MeasuredKernel], training: KernelTraining
    ):
        self.model = model
        self.kernels = kernels
        self.training = training
        self.random = np.random.default_rng(training.seed)
        self.weights = kernel_weights(kernels)
        times = [kernel.nanoseconds for kernel in kernels]
        self.logarithms = torch.tensor(times).float().log()
        self.optimizer = torch.optim.AdamW(
            model.parameters(), training.learning_rate, weight_decay=training.weight_decay
        )
        orders = [self.random.permutation(len(kernels)) for _ in range(training.orders)]
        self.orders = [list(self._prepared(order)) for order in orders]
        steps = sum(len(self.orders[epoch % len(orders)]) for epoch in range(training.epochs))
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer, training.learning_rate, steps, pct_start=training.warm_up
        )
        self.average = AveragedModel(
            model, multi_avg_fn=get_ema_multi_avg_fn(training.averaging), use_buffers=True
        )

    def epoch(self, number: int) -> float:
        """Takes a step on every batch; returns the mean loss."""
        self.model.train()
        prepared = self.orders[number % len(self.orders)]
        order = self.random.permutation(len(prepared))
        return mean(self._step(*prepared[place]) for place in order)

    def _prepared(self, order: np.ndarray) -> Iterator[tuple[KernelBatch, Work]]:
        """Yields all kernels in batches with their work, which training does not change."""
        for numbers in blocks(self.kernels, order, self.training.block_nodes):
            batch = make_batch(self.kernels, numbers)
            yield batch, self.model.encoder.work(batch)

    def _step(self, batch: KernelBatch, work: Work) -> float:
        numbers = batch.numbers
        predicted = self.model(batch, work)
        errors = F.huber_loss(
            predicted,
            self.logarithms[numbers],
            reduction="none",
            delta=self.training.linear_from,
        )
        loss = (self.weights[numbers] * errors).mean()
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.training.clip)
        self.optimizer.step()
        self.schedule.step()
        self.average.update_parameters(self.model)
        return float(loss.detach())
