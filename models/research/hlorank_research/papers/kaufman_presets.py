"""The settings that Kaufman 2021 tuned for tiles (tables 6 and 7), as presets."""

from dataclasses import dataclass

from hlorank_research.papers.kaufman import Kaufman, KaufmanSettings
from hlorank_research.papers.losses import PaperLoss
from hlorank_training.models.architecture import Architecture, Preset
from hlorank_training.models.training_settings import TrainSettings


@dataclass(frozen=True)
class Tuned:
    """One row of the tables."""

    gnn: str
    reduction: str
    hidden: int
    module_layers: int
    transformer_layers: int
    attention_heads: int
    learning_rate: float
    decay: float
    clip: float | None
    loss: str = "kaufman-hinge"


_CLIP = 1.0
"""Maximum norm of the gradient in rows that clip it; the paper does not say which."""
TUNED = (
    Tuned("none", "per-node", 512, 3, 0, 1, 8.02e-4, 1.0, None),
    Tuned("none", "column-wise", 1024, 3, 0, 1, 6.42e-4, 1.0, None),
    Tuned("none", "lstm", 512, 0, 0, 1, 4.34e-4, 0.99, _CLIP),
    Tuned("none", "transformer", 1024, 0, 3, 1, 4.24e-4, 0.99, _CLIP),
    Tuned("sage", "per-node", 512, 0, 0, 1, 1.526e-3, 1.0, None),
    Tuned("sage", "column-wise", 1024, 0, 0, 1, 6.42e-4, 1.0, None, "kaufman-logistic"),
    Tuned("sage", "lstm", 1024, 0, 0, 1, 3.86e-4, 0.98, _CLIP),
    Tuned("sage", "transformer", 1024, 0, 1, 1, 4.66e-4, 1.0, _CLIP),
    Tuned("gat", "per-node", 512, 0, 0, 2, 1e-5, 1.0, _CLIP),
    Tuned("gat", "column-wise", 512, 0, 0, 4, 1e-5, 1.0, _CLIP),
    Tuned("gat", "lstm", 512, 0, 0, 4, 1e-5, 0.99, _CLIP),
    Tuned("gat", "transformer", 512, 0, 2, 4, 1e-5, 1.0, _CLIP),
)


def _paper(row: Tuned) -> Preset:
    settings = KaufmanSettings(
        row.gnn,
        row.reduction,
        hidden=row.hidden,
        opcode=256,
        attention_heads=row.attention_heads,
        transformer_layers=row.transformer_layers,
        module_layers=row.module_layers,
    )
    training = TrainSettings(
        epochs=1000,
        minutes=7 * 24 * 60,
        optimizer="adam",
        learning_rate=row.learning_rate,
        decay=row.decay,
        weight_decay=0.0,
        clip=row.clip,
        averaging=0.0,
        graphs_per_step=8,
        configurations_per_graph=16,
        even_families=True,
        patience=1000,
        loss=PaperLoss(row.loss),
    )
    return Preset(settings, training)


def _small(row: Tuned) -> Preset:
    settings = KaufmanSettings(
        row.gnn,
        row.reduction,
        attention_heads=row.attention_heads,
        transformer_layers=row.transformer_layers,
        module_layers=row.module_layers,
        scale="log-standard",
    )
    training = TrainSettings(
        graphs_per_step=8, configurations_per_graph=16, loss=PaperLoss(row.loss)
    )
    return Preset(settings, training)


ARCHITECTURES = tuple(
    Architecture(
        f"kaufman-{row.gnn}-{row.reduction}", Kaufman, {"small": _small(row), "paper": _paper(row)}
    )
    for row in TUNED
)
