"""Plots as small SVG files whose bytes depend only on the plotted data."""

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path

from hlorank_tune.measure.atomic_files import write_atomically
from matplotlib import rc_context
from matplotlib.figure import Figure

_STYLE = {"axes.grid": True, "font.size": 9, "svg.fonttype": "none", "svg.hashsalt": "hlorank"}


@rc_context(_STYLE)
def plot_curves(history: Sequence[Mapping[str, float]], path: Path) -> None:
    """Loss and validation tau over a training's epochs; the best epoch is marked."""
    best = max(history, key=lambda epoch: epoch["validation_tau"])
    figure = Figure(figsize=(9.4, 2.7), layout="constrained")
    panels = (("Training loss", "loss"), ("Validation, Kendall's tau", "validation_tau"))
    for axes, (title, key) in zip(figure.subplots(1, 2), panels, strict=True):
        axes.set_title(f"{title}: {best[key]:.3f} at the best epoch, {best['epoch']:g}")
        axes.set_xlabel("epoch")
        axes.plot([e["epoch"] for e in history], [e[key] for e in history])
        axes.axvline(best["epoch"], linestyle="--")
    content = BytesIO()
    figure.savefig(content, format="svg", metadata={"Date": None, "Creator": None})
    write_atomically(path, content.getvalue())
