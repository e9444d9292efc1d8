"""Measures how well a model that was fitted to one graph ranks its unseen configurations.

One graph is not enough to compare architectures, but it checks features, segments, model and
training on real measurements: TpuGraphs' AlexNet has 29,905 distinct layouts. The model is compared
with ridge regression on the choices of single nodes, on the same splits, and with a server whose
model adapts to a few of the configurations.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from hlorank import Client
from sklearn.linear_model import Ridge
from sklearn.preprocessing import OneHotEncoder

from hlorank_research.comparisons.adapted import Adapted
from hlorank_training.data.dataset import Graph, distinct, read_graph
from hlorank_training.judging.evaluate import Score, mean_of
from hlorank_training.metrics.ranking import kendall_tau
from hlorank_training.models.architecture import Architecture, Preset
from hlorank_training.models.graphsage_transformer import (
    ModelSettings,
)
from hlorank_training.models.loss import LossSettings
from hlorank_training.models.registry import DEFAULT
from hlorank_training.models.train import score_graph, train
from hlorank_training.models.training_settings import TrainSettings

_TEST = 0.2
_VALIDATION = 0.1
_DRAWS = 3
"""Draws of the choices of nodes that are left out."""
_STEPS_PER_EPOCH = 25
_OURS = Preset(
    ModelSettings("layout", dropout=0.2, feature_dropout=0.4),
    TrainSettings(
        epochs=60,
        learning_rate=2e-3,
        weight_decay=0.02,
        graphs_per_step=1,
        configurations_per_graph=1024,
        loss=LossSettings(noise=5e-4, full_weight=0.02),
    ),
)


@dataclass(frozen=True)
class Fit:
    """Kendall's tau on the configurations that were left out."""

    split: str
    test: int
    """Number of configurations left out."""
    model: float
    ridge: float
    adapted: float | None
    """Of a server whose default model adapts to ``MEASURED`` configurations, if one was asked."""


@dataclass(frozen=True)
class Fitting:
    """The models that are fitted: their architecture, the minutes of each, and their number."""

    entry: Architecture
    minutes: float
    seeds: int = 3
    """Models whose scores are averaged, since scores of unseen choices vary with the seed."""

    def preset(self, seed: int) -> Preset:
        """Returns the settings: our own model's for one graph, else preset ``small``."""
        preset = _OURS if self.entry.name == DEFAULT else self.entry.preset("small")
        training = replace(preset.training, minutes=self.minutes, seed=seed, graphs_per_step=1)
        return replace(preset, training=training)


def within_graph(features: Path, fitting: Fitting, server: Client | None) -> Iterator[Fit]:
    """Fits and evaluates models that leave out a fifth of the configurations.

    The first leaves out random configurations, the others all that have certain choices of nodes.
    """
    segments = read_graph(features, features.stem)
    read = fitting.entry.model.form(fitting.preset(1).model).read
    graph = distinct(read(features, features.stem))
    nodes = _node_choices(distinct(segments))
    random = np.random.default_rng(0)
    rules = {"a fifth at random": partial(_at_random, random)}
    for draw in range(1, _DRAWS + 1):
        rules[f"choices of nodes, draw {draw}"] = partial(_with_unseen_choice, nodes, random)
    subject = Subject(graph, nodes, Adapted(server, features) if server else None)
    for name, rule in rules.items():
        yield subject.fit(name, rule, fitting)


def _node_choices(graph: Graph) -> np.ndarray:
    """Returns the index of every configurable node's layout: i64 [c, nodes]."""
    columns = []
    for segment in graph.segments:
        for node in np.flatnonzero((segment.local[0] >= -1).any(-1)):
            _, value = np.unique(segment.local[:, node], axis=0, return_inverse=True)
            columns.append(value.reshape(-1)[segment.choice])
    return np.stack(columns, 1)


LeaveOut = Callable[[np.ndarray, float], np.ndarray]
"""Maps (remaining configurations, share to leave out) to those left out; both i64."""


def _at_random(random: np.random.Generator, left: np.ndarray, share: float) -> np.ndarray:
    return left[random.random(len(left)) < share]


def _with_unseen_choice(
    nodes: np.ndarray, random: np.random.Generator, left: np.ndarray, share: float
) -> np.ndarray:
    """Leaves out all configurations with certain (node, layout) choices."""
    pairs = [(n, value) for n in range(nodes.shape[1]) for value in np.unique(nodes[left, n])]
    taken = np.zeros(len(left), bool)
    for index in random.permutation(len(pairs)):
        node, value = pairs[index]
        more = taken | (nodes[left, node] == value)
        taken = more if more.mean() <= share else taken
    return left[taken]


@dataclass(frozen=True)
class Subject:
    """A graph, the layouts of its nodes, and the server that adapts to it."""

    graph: Any
    nodes: np.ndarray
    """Index of every configurable node's layout: i64 [c, nodes]"""
    adapted: Adapted | None

    def fit(self, split: str, leave_out: LeaveOut, fitting: Fitting) -> Fit:
        """Leaves out configurations, and ranks them by every model."""
        graph = self.graph
        everything = np.arange(len(self.graph.runtimes))
        test = leave_out(everything, _TEST)
        rest = np.setdiff1d(everything, test)
        # By the same rule as the test, so that training stops by the criterion of the evaluation.
        validation = leave_out(rest, _VALIDATION)
        parts = [graph.subset(np.setdiff1d(rest, validation))], [graph.subset(validation)]
        unseen = graph.subset(test)
        return Fit(
            split,
            len(test),
            kendall_tau(_fitted(parts, fitting)(unseen), unseen.runtimes),
            kendall_tau(_ridge(self.nodes, graph.runtimes, rest, test), unseen.runtimes),
            self.adapted.tau(rest, test) if self.adapted else None,
        )


def _fitted(parts: tuple[list, list], fitting: Fitting) -> Score:
    training, validation = parts
    scores = []
    for seed in range(1, fitting.seeds + 1):
        preset = fitting.preset(seed)
        trained = train(fitting.entry.model, preset, training * _STEPS_PER_EPOCH, validation)
        scores.append(partial(score_graph, trained.model))
    return mean_of(scores)


def _ridge(nodes: np.ndarray, runtimes: np.ndarray, train_on, test_on) -> np.ndarray:
    encoder = OneHotEncoder(handle_unknown="ignore").fit(nodes[train_on])
    model = Ridge(alpha=1.0).fit(encoder.transform(nodes[train_on]), np.log(runtimes[train_on]))
    return model.predict(encoder.transform(nodes[test_on]))
