"""Trains one model on featurized graphs."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import cos, pi
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from tqdm import tqdm

from hlorank_training.data.dataset import Measured, distinct
from hlorank_training.data.ranking_quality import kendall_tau
from hlorank_training.models.architecture import Preset
from hlorank_training.models.checkpoint import read_state, write_state
from hlorank_training.models.steps import Steps, seeded
from hlorank_training.models.training_settings import TrainSettings


@dataclass(frozen=True)
class Trained:
    """The model of the best epoch, and the history of the training."""

    model: nn.Module
    history: list[dict[str, float]]


@dataclass(frozen=True)
class Keeping:
    """What a training keeps while it runs."""

    on_best: Callable[[nn.Module], None] = lambda _: None
    """Called with the model after every epoch that is the best so far."""
    state: Path | None = None
    """File for the state after every epoch; if it exists, that training goes on."""


def train(
    model_class: type[nn.Module],
    preset: Preset,
    train_graphs: Sequence[Measured],
    validation_graphs: Sequence[Measured],
    keeping: Keeping = Keeping(),
) -> Trained:
    """Trains until the validation tau stops rising, or the maximum epochs or time is reached.

    Raises ``RuntimeError`` if a training with other settings or graphs is in ``keeping.state``.
    """
    random = seeded(preset.training.seed)
    graphs = [distinct(graph, preset.training.repeated) for graph in train_graphs]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = model_class.for_graphs(preset.model, graphs).to(device)
    trainer = _Trainer(model, preset.training, random, graphs, validation_graphs, keeping)
    trainer.run()
    model.load_state_dict(trainer.best_state)
    return Trained(model.cpu().eval(), trainer.history)


def score_graph(model: nn.Module, graph: Measured) -> np.ndarray:
    """Returns scores f32 [c] of all configurations of a graph."""
    model.eval()
    with torch.no_grad():
        return model.scores([graph], [np.arange(len(graph.runtimes))]).cpu().numpy()


def validation_tau(model: nn.Module, graphs: Sequence[Measured]) -> float:
    """Returns the mean Kendall's tau over graphs."""
    return mean(kendall_tau(score_graph(model, graph), graph.runtimes) for graph in graphs)


_OPTIMIZERS = {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam}


def draw_graphs(
    random: np.random.Generator, graphs: Sequence[Measured], even_families: bool
) -> np.ndarray:
    """Returns the indices of an epoch's graphs, as many as there are, in the order of its steps.

    Every graph comes once; with ``even_families``, all families come equally often on average.
    """
    if not even_families:
        return random.permutation(len(graphs))
    members: dict[str, list[int]] = {}
    for index, graph in enumerate(graphs):
        members.setdefault(graph.family, []).append(index)
    families = list(members.values())
    drawn = random.integers(len(families), size=len(graphs))
    return np.array([random.choice(families[family]) for family in drawn])


def learning_rate_factor(settings: TrainSettings, epoch: int) -> float:
    """Returns the factor of the learning rate in an epoch, counted from 0."""
    warm_up = settings.warm_up * settings.epochs
    if epoch < warm_up:
        return (epoch + 1) / (warm_up + 1)
    if settings.decay is not None:
        return settings.decay**epoch
    return (1 + cos(pi * (epoch - warm_up) / (settings.epochs - warm_up))) / 2


class _Trainer:
    def __init__(self, model, settings: TrainSettings, random, graphs, validation_graphs, keeping):
        self.model = model
        self.settings = settings
        self.keeping = keeping
        self.graphs = graphs
        self.validation_graphs = validation_graphs
        self.random = random
        self.loss = settings.loss.function()
        optimizer = _OPTIMIZERS[settings.optimizer](
            model.parameters(), settings.learning_rate, weight_decay=settings.weight_decay
        )
        self.steps = Steps(model, optimizer, settings.averaging, settings.clip)
        self.average = self.steps.average.module
        factor = partial(learning_rate_factor, settings)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
        self.history: list[dict[str, float]] = []
        self.best_tau = -2.0
        self.best_epoch = 0
        self.best_state = {}

    def run(self) -> None:
        self._resume()
        deadline = time.monotonic() + 60 * self.settings.minutes
        done = len(self.history)
        epochs = self.settings.epochs
        progress = tqdm(range(done, epochs), desc="epochs", initial=done, total=epochs)
        for epoch in progress:
            loss = mean(self._step(graphs) for graphs in self._batches())
            self.schedule.step()
            tau = validation_tau(self.average, self.validation_graphs)
            self._remember(epoch, loss, tau)
            self._keep()
            progress.set_postfix(loss=f"{loss:.3f}", tau=f"{tau:.3f}", best=f"{self.best_tau:.3f}")
            stale = epoch - self.best_epoch >= self.settings.patience
            if stale or time.monotonic() > deadline:
                break

    def _batches(self) -> Iterator[list[Measured]]:
        order = draw_graphs(self.random, self.graphs, self.settings.even_families)
        size = self.settings.graphs_per_step
        for start in range(0, len(order), size):
            yield [self.graphs[i] for i in order[start : start + size]]

    def _step(self, graphs: list[Measured]) -> float:
        self.model.train()
        most = self.settings.configurations_per_graph
        chosen = [
            self.random.choice(len(g.runtimes), min(most, len(g.runtimes)), replace=False)
            for g in graphs
        ]
        runtimes = [graph.runtimes[i] for graph, i in zip(graphs, chosen, strict=True)]
        return self.steps.take(self._loss(self.model.scores(graphs, chosen), runtimes))

    def _loss(self, scores: Tensor, runtimes: Sequence[np.ndarray]) -> Tensor:
        """Returns the mean over graphs, and the sum over members if scores are [c, members].

        Scores of different graphs or members are never compared.
        """
        lists = torch.split(scores.view(len(scores), -1), list(map(len, runtimes)))
        losses = [
            self.loss(member, torch.from_numpy(times).to(part.device))
            for part, times in zip(lists, runtimes, strict=True)
            for member in part.unbind(-1)
        ]
        return torch.stack(losses).sum() / len(runtimes)

    def _remember(self, epoch: int, loss: float, tau: float) -> None:
        self.history.append({"epoch": epoch, "loss": loss, "validation_tau": tau})
        if tau > self.best_tau:
            self.best_tau = tau
            self.best_epoch = epoch
            self.best_state = {k: v.clone() for k, v in self.average.state_dict().items()}
            self.keeping.on_best(self.average)

    def _keep(self) -> None:
        if self.keeping.state is None:
            return
        state = {name: part.state_dict() for name, part in self._parts().items()} | {
            "random": (torch.get_rng_state(), self.random.bit_generator.state),
            "best": (self.best_tau, self.best_epoch, self.best_state),
            "history": self.history,
        }
        write_state(self.keeping.state, self._identity(), state)

    def _resume(self) -> None:
        if self.keeping.state is None or not self.keeping.state.exists():
            return
        state = read_state(self.keeping.state, self._identity())
        for name, part in self._parts().items():
            part.load_state_dict(state[name])
        torch_random, self.random.bit_generator.state = state["random"]
        torch.set_rng_state(torch_random)
        self.best_tau, self.best_epoch, self.best_state = state["best"]
        self.history = state["history"]

    def _parts(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "average": self.steps.average,
            "optimizer": self.steps.optimizer,
            "schedule": self.schedule,
        }

    def _identity(self) -> str:
        """Returns everything that must be the same for a training to go on; the time may differ."""
        names = [graph.name for graph in (*self.graphs, *self.validation_graphs)]
        return repr((self.model.settings, replace(self.settings, minutes=0.0), names))
