"""Hyperparameters of a training."""

from dataclasses import dataclass, field

from hlorank_training.models.loss import LossSettings


@dataclass(frozen=True)
class TrainSettings:
    """Hyperparameters of a training."""

    seed: int = 1
    epochs: int = 200
    minutes: float = 6.0
    optimizer: str = "adamw"
    """``adamw`` or ``adam``"""
    learning_rate: float = 1e-3
    decay: float | None = None
    """Factor of the learning rate per epoch; if None, a cosine takes it to 0 over ``epochs``."""
    warm_up: float = 0.0
    """Share of the epochs in which the learning rate first rises linearly."""
    weight_decay: float = 0.02
    clip: float | None = 1.0
    """Maximum norm of the gradient, if any."""
    averaging: float = 0.98
    """Decay of the moving average of the weights per step; the average is the trained model."""
    graphs_per_step: int = 2
    configurations_per_graph: int = 32
    even_families: bool = False
    """Whether a step draws the family of each graph first, and then a graph of it, so that large
    families do not count more (Kaufman 2021, section 4: examples evenly from each model type)."""
    repeated: str = "mean"
    """Run time of a configuration that was measured repeatedly: ``mean`` or ``smallest``."""
    patience: int = 25
    """Maximum epochs without a better validation tau."""
    loss: LossSettings = field(default_factory=LossSettings)
