"""Trains one model on featurized graphs."""

import io
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from math import cos, pi
from pathlib import Path
from statistics import mean

import numpy as np
import torch
from hlorank.measure.atomic_files import write_atomically
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from tqdm import tqdm

from hlorank_training.data.dataset import Graph, distinct
from hlorank_training.models.architectures.architecture import Preset
from hlorank_training.models.architectures.registry import architecture
from hlorank_training.models.loss import loss_of
from hlorank_training.models.metrics import kendall_tau
from hlorank_training.models.training_settings import TrainSettings

OnBest = Callable[[nn.Module], None]
"""Called with the model after every epoch that is the best so far."""


@dataclass(frozen=True)
class Trained:
    """The model of the best epoch, and the history of the training."""

    model: nn.Module
    history: list[dict[str, float]]


def train(
    model_class: type[nn.Module],
    preset: Preset,
    train_graphs: Sequence[Graph],
    validation_graphs: Sequence[Graph],
    on_best: OnBest = lambda _: None,
) -> Trained:
    """Trains until the validation tau stops rising, or the maximum epochs or time is reached."""
    torch.manual_seed(preset.training.seed)
    # The products are small: more threads would mostly wait for each other.
    torch.set_num_threads(1)
    graphs = [distinct(graph) for graph in train_graphs]
    model = model_class.for_graphs(preset.model, graphs)
    trainer = _Trainer(model, preset.training, graphs, validation_graphs, on_best)
    trainer.run()
    model.load_state_dict(trainer.best_state)
    return Trained(model.eval(), trainer.history)


def score_graph(model: nn.Module, graph: Graph) -> np.ndarray:
    """Returns scores f32 [c] of all configurations of a graph."""
    model.eval()
    with torch.no_grad():
        return model.scores([graph], [np.arange(len(graph.runtimes))]).numpy()


def validation_tau(model: nn.Module, graphs: Sequence[Graph]) -> float:
    """Returns the mean Kendall's tau over graphs."""
    return mean(kendall_tau(score_graph(model, graph), graph.runtimes) for graph in graphs)


_OPTIMIZERS = {
    "adamw": torch.optim.AdamW,
    "adam": torch.optim.Adam,
    "adagrad": torch.optim.Adagrad,
}


def learning_rate_factor(settings: TrainSettings, epoch: int) -> float:
    """Returns the factor of the learning rate in an epoch, counted from 0."""
    warm_up = settings.warm_up * settings.epochs
    if epoch < warm_up:
        return (epoch + 1) / (warm_up + 1)
    if settings.decay is not None:
        return settings.decay**epoch
    return (1 + cos(pi * (epoch - warm_up) / (settings.epochs - warm_up))) / 2


class _Trainer:
    def __init__(self, model, settings: TrainSettings, graphs, validation_graphs, on_best: OnBest):
        self.model, self.settings, self.on_best = model, settings, on_best
        self.graphs, self.validation_graphs = list(graphs), list(validation_graphs)
        self.random = np.random.default_rng(settings.seed)
        self.loss = loss_of(settings.loss)
        self.optimizer = _OPTIMIZERS[settings.optimizer](
            model.parameters(), settings.learning_rate, weight_decay=settings.weight_decay
        )
        self.average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(settings.averaging))
        self.schedule = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, partial(learning_rate_factor, settings)
        )
        self.history: list[dict[str, float]] = []
        self.best_tau, self.best_epoch, self.best_state = -2.0, 0, {}

    def run(self) -> None:
        deadline = time.monotonic() + 60 * self.settings.minutes
        progress = tqdm(range(self.settings.epochs), desc="epochs")
        for epoch in progress:
            loss = mean(self._step(graphs) for graphs in self._batches())
            self.schedule.step()
            tau = validation_tau(self.average.module, self.validation_graphs)
            self._remember(epoch, loss, tau)
            progress.set_postfix(loss=f"{loss:.3f}", tau=f"{tau:.3f}", best=f"{self.best_tau:.3f}")
            stale = epoch - self.best_epoch >= self.settings.patience
            if stale or time.monotonic() > deadline:
                break

    def _batches(self) -> Iterator[list[Graph]]:
        order = self.random.permutation(len(self.graphs))
        size = self.settings.graphs_per_step
        for start in range(0, len(order), size):
            yield [self.graphs[i] for i in order[start : start + size]]

    def _draw(self, graph: Graph) -> np.ndarray:
        count = min(self.settings.configurations_per_graph, len(graph.runtimes))
        return self.random.choice(len(graph.runtimes), count, replace=False)

    def _step(self, graphs: list[Graph]) -> float:
        self.model.train()
        chosen = [self._draw(graph) for graph in graphs]
        runtimes = [graph.runtimes[i] for graph, i in zip(graphs, chosen, strict=True)]
        loss = self._loss(self.model.scores(graphs, chosen), runtimes)
        self.optimizer.zero_grad()
        loss.backward()
        if self.settings.clip is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.clip)
        self.optimizer.step()
        self.average.update_parameters(self.model)
        return float(loss.detach())

    def _loss(self, scores: Tensor, runtimes: Sequence[np.ndarray]) -> Tensor:
        """Returns the mean over graphs; scores of different graphs are never compared."""
        lists = torch.split(scores, list(map(len, runtimes)))
        losses = [
            self.loss(part, torch.from_numpy(times))
            for part, times in zip(lists, runtimes, strict=True)
        ]
        return torch.stack(losses).mean()

    def _remember(self, epoch: int, loss: float, tau: float) -> None:
        self.history.append({"epoch": epoch, "loss": loss, "validation_tau": tau})
        if tau > self.best_tau:
            self.best_tau, self.best_epoch = tau, epoch
            self.best_state = {k: v.clone() for k, v in self.average.module.state_dict().items()}
            self.on_best(self.average.module)


def save_checkpoint(path: Path, model: nn.Module) -> None:
    """Writes the architecture's name, the model's settings and its weights."""
    content = io.BytesIO()
    settings = asdict(model.settings)
    state = model.state_dict()
    torch.save({"architecture": model.architecture, "settings": settings, "state": state}, content)
    write_atomically(path, content.getvalue())


def load_checkpoint(path: Path) -> nn.Module:
    """Reads a checkpoint that ``save_checkpoint`` wrote."""
    content = torch.load(path, weights_only=True)
    settings = content["settings"]
    entry = architecture(settings["task"], content["architecture"])
    settings_class = type(next(iter(entry.presets.values())).model)
    model = entry.model(settings_class(**settings))
    model.load_state_dict(content["state"])
    return model.eval()
