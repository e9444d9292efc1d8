"""What all trainings do: seeds, steps, and the moving average of the weights that is the model."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import mean

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from tqdm import tqdm


def seeded(seed: int) -> np.random.Generator:
    """Prepares torch for a training, and returns what draws its batches."""
    torch.manual_seed(seed)
    # The products are small: more threads would mostly wait for each other.
    torch.set_num_threads(1)
    return np.random.default_rng(seed)


class Steps:
    """Takes the steps of an optimizer, each with gradients of a maximum norm, if any."""

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        averaging: float,
        clip: float | None,
        use_buffers: bool = False,
    ):
        """``use_buffers`` says that statistics in the model are averaged too."""
        self.model = model
        self.optimizer = optimizer
        self.average = AveragedModel(
            model, multi_avg_fn=get_ema_multi_avg_fn(averaging), use_buffers=use_buffers
        )
        self._clip = clip

    def take(self, loss: Tensor) -> float:
        """Takes a step; returns the loss before it."""
        self.optimizer.zero_grad()
        loss.backward()
        if self._clip is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), self._clip)
        self.optimizer.step()
        self.average.update_parameters(self.model)
        return float(loss.detach())


@dataclass(frozen=True)
class OneCycleSettings:
    """Hyperparameters of a training whose learning rate rises and falls once."""

    epochs: int = 60
    seed: int = 1
    learning_rate: float = 2e-3
    """The highest."""
    weight_decay: float = 0.01
    warm_up: float = 0.15
    """Share of the steps in which the learning rate rises."""
    clip: float = 1.0
    averaging: float = 0.98
    """Decay of the moving average of the weights per step; the average is the trained model."""


def train_one_cycle(
    model: nn.Module,
    settings: OneCycleSettings,
    steps: int,
    losses: Callable[[int], Iterator[Tensor]],
) -> tuple[nn.Module, list[dict[str, float]]]:
    """Trains with the ``losses`` of each epoch, a step for each; ``steps`` are those of all epochs.

    Returns the model and the mean loss of every epoch.
    """
    rate = settings.learning_rate
    optimizer = torch.optim.AdamW(model.parameters(), rate, weight_decay=settings.weight_decay)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, rate, steps, pct_start=settings.warm_up
    )
    taken = Steps(model, optimizer, settings.averaging, settings.clip, use_buffers=True)
    history = []
    with tqdm(range(settings.epochs), desc="epochs") as epochs:
        for epoch in epochs:
            model.train()
            found = []
            for loss in losses(epoch):
                found.append(taken.take(loss))
                schedule.step()
            history.append({"epoch": epoch, "loss": mean(found)})
            epochs.set_postfix(loss=f"{history[-1]['loss']:.4f}")
    return taken.average.module.eval(), history
