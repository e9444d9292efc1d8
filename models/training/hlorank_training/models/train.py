"""Trains one segment model on featurized graphs."""

import io
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import mean

import numpy as np
import torch
from hlorank.measure.atomic_files import write_atomically
from torch import Tensor
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from tqdm import tqdm

from hlorank_training.data.batch import Batch, make_batch
from hlorank_training.data.batch import score as score_batch
from hlorank_training.data.dataset import Graph, distinct
from hlorank_training.models.loss import LossSettings, loss_of
from hlorank_training.models.metrics import kendall_tau
from hlorank_training.models.model import ModelSettings, SegmentModel


@dataclass(frozen=True)
class TrainSettings:
    """Hyperparameters of a training."""

    seed: int = 1
    epochs: int = 200
    minutes: float = 6.0
    learning_rate: float = 1e-3
    weight_decay: float = 0.02
    clip: float = 1.0
    averaging: float = 0.98
    """Decay of the moving average of the weights per step; the average is the trained model."""
    graphs_per_step: int = 2
    configurations_per_graph: int = 32
    patience: int = 25
    """Maximum epochs without a better validation tau."""
    loss: LossSettings = field(default_factory=LossSettings)


MODEL_SETTINGS = {
    # There are few graphs: dropout of features and units raised tau on left-out graphs.
    "layout": ModelSettings("layout", dropout=0.2, feature_dropout=0.3),
    "tile": ModelSettings("tile", feature_dropout=0.2),
}
TASK_SETTINGS = {
    # Layouts differ by a few per cent, and their graphs have many segments.
    "layout": TrainSettings(loss=LossSettings(noise=0.005, full_weight=0.05)),
    # Tiles differ by factors, and kernels are small, so that many fit into a step.
    "tile": TrainSettings(
        learning_rate=2e-3, graphs_per_step=8, loss=LossSettings(noise=0.02, full_weight=0.2)
    ),
}

OnBest = Callable[[SegmentModel], None]
"""Called with the model after every epoch that is the best so far."""


@dataclass(frozen=True)
class Trained:
    """The model of the best epoch, and the history of the training."""

    model: SegmentModel
    history: list[dict[str, float]]


def train(
    model_settings: ModelSettings,
    settings: TrainSettings,
    train_graphs: Sequence[Graph],
    validation_graphs: Sequence[Graph],
    on_best: OnBest = lambda _: None,
) -> Trained:
    """Trains until the validation tau stops rising, or the maximum epochs or time is reached."""
    torch.manual_seed(settings.seed)
    # The products are small: more threads would mostly wait for each other.
    torch.set_num_threads(1)
    model = SegmentModel(replace(model_settings, vectors=has_vectors(train_graphs)))
    graphs = [distinct(graph) for graph in train_graphs]
    fit_statistics(model, graphs)
    trainer = _Trainer(model, settings, graphs, validation_graphs, on_best)
    trainer.run()
    model.load_state_dict(trainer.best_state)
    return Trained(model.eval(), trainer.history)


def has_vectors(graphs: Sequence[Graph]) -> bool:
    """Returns whether the tiles of graphs have input bounds, which are vectors."""
    local = graphs[0].segments[0].local
    return local.ndim == 2 and bool(local[:, 16:22].any())


def fit_statistics(model: SegmentModel, graphs: Sequence[Graph]) -> None:
    """Computes the statistics of the standardization from the training graphs."""
    segments = [segment for graph in graphs for segment in graph.segments]
    rows = np.concatenate([segment.features for segment in segments])
    model.encoder.standardise.fit(torch.from_numpy(rows))
    if model.encoder.settings.task == "tile":
        tiles = np.concatenate([segment.local for segment in segments])
        model.encoder.configuration.fit(torch.from_numpy(tiles))


def forward(model: SegmentModel, batch: Batch) -> Tensor:
    """Returns scores f32 [c] of a batch, with gradients."""
    width = model.encoder.settings.embedding
    total = torch.zeros(batch.configurations, width)
    for bucket in batch.buckets:
        embedding = model.encoder(*map(torch.from_numpy, bucket.inputs))
        rows = embedding[torch.from_numpy(bucket.row)]
        total = total.index_add(0, torch.from_numpy(bucket.configuration), rows)
    return model.head(total)


def score_graph(model: SegmentModel, graph: Graph) -> np.ndarray:
    """Returns scores f32 [c] of all configurations of a graph."""

    def call(part: torch.nn.Module) -> Callable[..., np.ndarray]:
        return lambda *arrays: part(*map(torch.from_numpy, arrays)).numpy()

    batch = make_batch([graph], [np.arange(len(graph.runtimes))])
    model.eval()
    with torch.no_grad():
        return score_batch(batch, lambda inputs: call(model.encoder)(*inputs), call(model.head))


def validation_tau(model: SegmentModel, graphs: Sequence[Graph]) -> float:
    """Returns the mean Kendall's tau over graphs."""
    return mean(kendall_tau(score_graph(model, graph), graph.runtimes) for graph in graphs)


class _Trainer:
    def __init__(self, model, settings: TrainSettings, graphs, validation_graphs, on_best: OnBest):
        self.model, self.settings, self.on_best = model, settings, on_best
        self.graphs, self.validation_graphs = list(graphs), list(validation_graphs)
        self.random = np.random.default_rng(settings.seed)
        self.loss = loss_of(settings.loss)
        self.optimizer = torch.optim.AdamW(
            model.parameters(), settings.learning_rate, weight_decay=settings.weight_decay
        )
        self.average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(settings.averaging))
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, settings.epochs)
        self.history: list[dict[str, float]] = []
        self.best_tau, self.best_epoch, self.best_state = -2.0, 0, {}

    def run(self) -> None:
        deadline = time.monotonic() + 60 * self.settings.minutes
        progress = tqdm(range(self.settings.epochs), desc="epochs")
        for epoch in progress:
            loss = mean(self._step(batch) for batch in self._batches())
            self.schedule.step()
            tau = validation_tau(self.average.module, self.validation_graphs)
            self._remember(epoch, loss, tau)
            progress.set_postfix(loss=f"{loss:.3f}", tau=f"{tau:.3f}", best=f"{self.best_tau:.3f}")
            stale = epoch - self.best_epoch >= self.settings.patience
            if stale or time.monotonic() > deadline:
                break

    def _batches(self) -> Iterator[Batch]:
        order = self.random.permutation(len(self.graphs))
        size = self.settings.graphs_per_step
        for start in range(0, len(order), size):
            graphs = [self.graphs[i] for i in order[start : start + size]]
            yield make_batch(graphs, [self._draw(graph) for graph in graphs])

    def _draw(self, graph: Graph) -> np.ndarray:
        count = min(self.settings.configurations_per_graph, len(graph.runtimes))
        return self.random.choice(len(graph.runtimes), count, replace=False)

    def _step(self, batch: Batch) -> float:
        self.model.train()
        loss = self._loss(forward(self.model, batch), batch)
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.clip)
        self.optimizer.step()
        self.average.update_parameters(self.model)
        return float(loss.detach())

    def _loss(self, scores: Tensor, batch: Batch) -> Tensor:
        lists = torch.split(scores, [len(runtimes) for runtimes in batch.runtimes])
        losses = [
            self.loss(part, torch.from_numpy(runtimes))
            for part, runtimes in zip(lists, batch.runtimes, strict=True)
        ]
        return torch.stack(losses).mean()

    def _remember(self, epoch: int, loss: float, tau: float) -> None:
        self.history.append({"epoch": epoch, "loss": loss, "validation_tau": tau})
        if tau > self.best_tau:
            self.best_tau, self.best_epoch = tau, epoch
            self.best_state = {k: v.clone() for k, v in self.average.module.state_dict().items()}
            self.on_best(self.average.module)


def save_checkpoint(path: Path, model: SegmentModel) -> None:
    """Writes weights and model settings."""
    content = io.BytesIO()
    torch.save({"settings": asdict(model.encoder.settings), "state": model.state_dict()}, content)
    write_atomically(path, content.getvalue())


def load_checkpoint(path: Path) -> SegmentModel:
    """Reads a checkpoint that ``save_checkpoint`` wrote."""
    content = torch.load(path, weights_only=True)
    model = SegmentModel(ModelSettings(**content["settings"]))
    model.load_state_dict(content["state"])
    return model.eval()
