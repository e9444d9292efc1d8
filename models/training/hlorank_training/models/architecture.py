"""Architectures: model classes under their names, with presets of settings.

A model class is a ``torch.nn.Module`` with

* ``kind``, ``architecture`` (its name) and ``settings``
* ``form(settings)``: the form in which it takes graphs
* ``for_graphs(settings, graphs)``: creates an untrained model with the training graphs' statistics
* ``scores(graphs, chosen)``: scores f32 [c] of chosen configurations, for training and evaluation
* for the kind ``segment`` (base class ``segment_model.SegmentModel``): ``encoder``, ``head`` and
  ``embedding``, the embedding's width

Training, evaluation and checkpoints use nothing else.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

from hlorank_training.models.training_settings import TrainSettings


@dataclass(frozen=True)
class Preset:
    """Sizes of a model, and the hyperparameters of its training."""

    model: Any
    """The settings from which the model is created: a frozen dataclass with ``task``."""
    training: TrainSettings


@dataclass(frozen=True)
class Architecture:
    """A model class under its name, with the presets that exist of it."""

    name: str
    model: type[nn.Module]
    presets: Mapping[str, Preset]
    """By name: ``small`` for the run times that ship; papers' architectures have others too."""

    @property
    def settings(self) -> Any:
        """Those of the model in the first preset."""
        return next(iter(self.presets.values())).model

    @property
    def task(self) -> str:
        """``layout`` or ``tile``"""
        return self.settings.task

    def preset(self, name: str) -> Preset:
        """Returns a preset; raises ``ValueError`` if it does not exist."""
        if name not in self.presets:
            raise ValueError(
                f"architecture '{self.name}' has no preset '{name}', "
                f"expected: {', '.join(self.presets)}"
            )
        return self.presets[name]


@dataclass(frozen=True)
class Registry:
    """Architectures by task and name."""

    entries: tuple[Architecture, ...]

    def of_task(self, task: str) -> dict[str, Architecture]:
        """Returns the architectures for ``layout`` or ``tile`` by name."""
        return {entry.name: entry for entry in self.entries if entry.task == task}

    def find(self, task: str, name: str) -> Architecture:
        """Returns one architecture; raises ``ValueError`` if it does not exist for the task."""
        known = self.of_task(task)
        if name not in known:
            expected = ", ".join(known)
            raise ValueError(
                f"architecture '{name}' does not exist for task '{task}', expected: {expected}"
            )
        return known[name]
