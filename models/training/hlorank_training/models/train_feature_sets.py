"""Trains models of graphs with named features."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

import numpy as np
import torch
from torch import Tensor
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from tqdm import tqdm

from hlorank_training.data.feature_graphs import FeatureGraph
from hlorank_training.models.feature_set_model import (
    FeatureSetModel,
    FeatureSetSettings,
    StepModel,
    make_batch,
)
from hlorank_training.models.training_settings import logistic, rank_mean

_NANOSECONDS_PER_MILLISECOND = 1e6


@dataclass(frozen=True)
class FeatureSetTraining:
    """Hyperparameters of a training."""

    epochs: int = 60
    learning_rate: float = 2e-3
    weight_decay: float = 0.01
    graphs_per_step: int = 4
    averaging: float = 0.98
    """Decay of the moving average of the weights per step; the average is the trained model."""
    seed: int = 1


def loss_of(settings: FeatureSetSettings, scores: Tensor, nanoseconds: Tensor) -> Tensor:
    """Returns the loss of one graph: logistic over pairs, and if scores are run times also the
    squared error of the logarithm of milliseconds."""
    pairs = rank_mean(logistic, scores, nanoseconds)
    if settings.order:
        return pairs
    logarithms = torch.log(nanoseconds / _NANOSECONDS_PER_MILLISECOND)
    return pairs + ((scores - logarithms) ** 2).mean()


def train_feature_set(
    graphs: Sequence[FeatureGraph],
    settings: FeatureSetSettings,
    training: FeatureSetTraining,
    kind: type[FeatureSetModel] | type[StepModel] = FeatureSetModel,
) -> FeatureSetModel | StepModel:
    """Trains a model of a kind on all configurations of graphs."""
    torch.manual_seed(training.seed)
    torch.set_num_threads(1)
    random = np.random.default_rng(training.seed)
    model = kind(settings)
    model.fit(graphs)
    average = AveragedModel(
        model, multi_avg_fn=get_ema_multi_avg_fn(training.averaging), use_buffers=True
    )
    optimizer = torch.optim.AdamW(
        model.parameters(), training.learning_rate, weight_decay=training.weight_decay
    )
    steps = -(-len(graphs) // training.graphs_per_step)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, training.learning_rate, training.epochs * steps, pct_start=0.15
    )
    times = [torch.from_numpy(graph.nanoseconds).float() for graph in graphs]
    with tqdm(range(training.epochs), desc="epochs") as epochs:
        for _ in epochs:
            model.train()
            losses = []
            for chosen in np.array_split(random.permutation(len(graphs)), steps):
                batch = make_batch([graphs[number] for number in chosen])
                scores = zip(chosen, model(batch).split(batch.counts), strict=True)
                loss = torch.stack([loss_of(settings, each, times[n]) for n, each in scores]).mean()
                optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                average.update_parameters(model)
                losses.append(float(loss.detach()))
            epochs.set_postfix(loss=f"{mean(losses):.4f}")
    return average.module.eval()
