"""A schedule of a Halide pipeline, and how it is drawn."""

from dataclasses import dataclass
from hashlib import sha256

import numpy as np


@dataclass(frozen=True)
class Draw:
    """How a schedule is drawn; draws that differ often give the same schedule."""

    number: int
    """Seed of the noise and of the dropout."""
    noise: float = 0.0
    """Relative noise on the weights of the autoscheduler's cost model."""
    keep: int = 100
    """Percentage of the search's choices that dropout keeps."""
    beam: int = 1


@dataclass(frozen=True)
class Schedule:
    """A schedule that was applied to a pipeline."""

    stages: tuple[str, ...]
    edges: np.ndarray
    """i64 [m, 2]: consumer, producer"""
    node_features: np.ndarray
    """f32 [n, 287]"""
    config_features: np.ndarray
    """f32 [n, 39]"""
    predicted_milliseconds: float
    """By the cost model with the noise of the draw."""
    source: str
    """The schedule as C++."""

    @property
    def digest(self) -> str:
        """Of the features, which schedules that differ have in common only if they are equal."""
        return sha256(self.config_features.tobytes()).hexdigest()
