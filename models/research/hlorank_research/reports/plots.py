"""Plots of comparisons and studies."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from hlorank_training.reports.plots import (
    ACCENT,
    AROUND_ROWS,
    LINE,
    QUIET,
    ROW,
    draw_bars,
    draw_dots,
    draw_rules,
    figure,
    name_rows,
    save,
    styled,
)


@styled
def plot_comparison(rows: Sequence[tuple[str, float, Sequence[float]]], path: Path) -> None:
    """Kendall's tau of models and baselines: label, mean and the tau of every graph."""
    made = figure(AROUND_ROWS + 2 * ROW * len(rows), "A dot is a graph, a bar the mean")
    axes = made.subplots()
    draw_rules(axes, len(rows))
    draw_dots(axes, [taus for _, _, taus in rows])
    draw_bars(axes, [mean for _, mean, _ in rows])
    axes.axvline(0, color=QUIET, linewidth=0.8, zorder=1.6)
    axes.set_xlim(right=1.02)
    axes.set_xlabel("Kendall's tau with the measured run times (0: random order, 1: same order)")
    name_rows(axes, [label for label, _, _ in rows])
    _write_means(axes, [mean for _, mean, _ in rows])
    save(made, path)


@styled
def plot_gains(lines: Mapping[str, np.ndarray], path: Path) -> None:
    """Plots the best run time so far, relative to the default's, against measurements."""
    made = figure(3.6)
    axes = made.subplots()
    for color, (name, line) in zip((ACCENT, LINE, QUIET), lines.items(), strict=False):
        axes.step(np.arange(len(line)), line, where="post", color=color, label=name)
    axes.set_xscale("symlog")
    axes.set_xlabel("measured tiles of every dispatch")
    axes.set_ylabel("time of the dispatches, as a multiple of the default's")
    axes.legend(frameon=False)
    save(made, path)


def _write_means(axes: Axes, means: Sequence[float]) -> None:
    place = {"transform": axes.get_yaxis_transform(), "va": "center", "ha": "right"}
    for row, mean in enumerate(means):
        axes.text(1.06, row, f"{mean:.2f}".replace("-", "\N{MINUS SIGN}"), **place)
