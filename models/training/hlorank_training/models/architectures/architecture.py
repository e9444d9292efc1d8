"""An entry of the registry."""

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
    """By name: ``small`` for the run times that ship, and ``paper`` with the published sizes."""

    @property
    def task(self) -> str:
        """``layout`` or ``tile``"""
        return next(iter(self.presets.values())).model.task

    def preset(self, name: str) -> Preset:
        """Returns a preset; raises ``ValueError`` if it does not exist."""
        if name not in self.presets:
            raise ValueError(
                f"architecture '{self.name}' has no preset '{name}', "
                f"expected: {', '.join(self.presets)}"
            )
        return self.presets[name]
