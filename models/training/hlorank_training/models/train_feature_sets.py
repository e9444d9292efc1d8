"""Trains models of graphs with named features."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from hlorank_training.data.feature_graphs import FeatureGraph
from hlorank_training.models.feature_set_model import (
    FeatureSetModel,
    FeatureSetSettings,
    StepModel,
    make_batch,
)
from hlorank_training.models.steps import OneCycleSettings, seeded, train_one_cycle
from hlorank_training.models.training_settings import logistic, rank_mean

_NANOSECONDS_PER_MILLISECOND = 1e6


@dataclass(frozen=True)
class FeatureSetTraining(OneCycleSettings):
    """Hyperparameters of a training."""

    graphs_per_step: int = 4


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
    random = seeded(training.seed)
    model = kind(settings)
    model.fit(graphs)
    steps = -(-len(graphs) // training.graphs_per_step)
    times = [torch.from_numpy(graph.nanoseconds).float() for graph in graphs]

    def losses(_: int) -> Iterator[Tensor]:
        for chosen in np.array_split(random.permutation(len(graphs)), steps):
            batch = make_batch([graphs[number] for number in chosen])
            scores = zip(chosen, model(batch).split(batch.counts), strict=True)
            yield torch.stack([loss_of(settings, each, times[n]) for n, each in scores]).mean()

    return train_one_cycle(model, training, training.epochs * steps, losses)[0]
