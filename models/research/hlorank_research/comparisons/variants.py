"""The comparisons of ``compare``: an architecture, and what its variants change."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hlorank_training.models.registry import DEFAULT


@dataclass(frozen=True)
class Variant:
    """The differences of a model from preset ``small`` of an architecture."""

    changes: dict[str, Any] = field(default_factory=dict)
    """Changed settings of the model."""
    loss: str | None = None
    """Name of the loss; None for the preset's."""
    share: float = 1.0
    """Share of the training graphs, which shows whether more graphs would help."""
    published: str = ""
    """The paper's own figure."""


@dataclass(frozen=True)
class Comparison:
    """The variants of an architecture by label; the first is the full model."""

    variants: Mapping[str, Variant]
    seeds: int = 1
    """Seeds of the full model; several are also averaged."""
    published: str = ""
    """What the paper's own figures are; empty if there are none."""
    baselines: bool = False
    """Whether boosted trees and the analytical cost are compared too."""

    @property
    def full(self) -> str:
        """Label of the full model."""
        return next(iter(self.variants))

    def runs(self) -> list[tuple[str, int]]:
        """Returns the label and the seed of every model."""
        more = [(self.full, seed) for seed in range(2, self.seeds + 1)]
        return [(label, 1) for label in self.variants] + more


_OURS = {
    "GraphSAGE + Transformer, sum": Variant(),
    "no Transformer": Variant({"attention": False}),
    "no edges (MLP)": Variant({"attention": False, "edges": False}),
    "mean pooling": Variant({"pooling": "mean"}),
    "max pooling": Variant({"pooling": "max"}),
    "hinge loss": Variant(loss="hinge"),
    "ListMLE loss": Variant(loss="list_mle"),
    "half of the training graphs": Variant(share=0.5),
}
_VANILLA = {"costs": "absent"}
_KAUFMAN = {
    "vanilla": Variant(_VANILLA, published="6.2, 6.8"),
    "undirected": Variant(_VANILLA | {"directed": False}, published="7.2, 6.8"),
    "static performance features at nodes": Variant(published="6.5, 6.3"),
    "static performance features of the kernel": Variant({"costs": "kernel"}, published="6.1, 5.9"),
    "tile joined after the reduction": Variant(
        _VANILLA | {"tile": "kernel"}, published="10.2, 9.4"
    ),
    "MSE loss": Variant(_VANILLA, loss="kaufman-log-mse", published="16.7, 17.7"),
}
_TGRAPH = {
    "TGraph": Variant(published="0.684, 0.479"),
    "no channel attention": Variant({"channels": False}, published="0.674, 0.479"),
    "no attention across configurations": Variant({"cross": False}, published="0.654, 0.452"),
    "no edges": Variant({"edges": False}, published="0.502, 0.363"),
}
COMPARISONS = {
    ("layout", DEFAULT): Comparison(_OURS, seeds=3, baselines=True),
    ("tile", DEFAULT): Comparison(_OURS, seeds=3, baselines=True),
    ("tile", "kaufman-sage-per-node"): Comparison(
        _KAUFMAN, published="paper: median, mean Tile-Size APE (TPU v2), %"
    ),
    ("layout", "tgraph-layout-cross"): Comparison(
        _TGRAPH, published="paper: tau (TpuGraphs, validation), random, default of XLA"
    ),
}
"""By task and architecture: our own model, and the ablations of table 3 of Kaufman 2021 and of
TGraph 2024."""


def comparison(task: str, name: str) -> Comparison:
    """Returns the comparison of an architecture; raises ``ValueError`` if there is none."""
    if (task, name) not in COMPARISONS:
        known = ", ".join(other for of, other in COMPARISONS if of == task)
        raise ValueError(
            f"architecture '{name}' has no variants for task '{task}', expected: {known}"
        )
    return COMPARISONS[task, name]
