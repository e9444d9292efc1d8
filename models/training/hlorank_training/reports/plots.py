"""Plots as small SVG files whose bytes depend only on the plotted data."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Literal

import numpy as np
from hlorank_tune.measure.atomic_files import write_atomically
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, NullLocator

_WIDTH = 9.4
"""Inches, about 900 pixels: the width of a README."""
ROW = 0.21
AROUND_ROWS = 1.1
"""Inches for one row, and for title and axis."""

_SPECK = 0.02
"""Rows; the line whose round ends are a dot. A renderer may leave out what has no length."""

INK, QUIET, _GRID = "#1f2933", "#6b7785", "#e6eaee"
_DOT, LINE, ACCENT = "#8ab4dc", "#2f6fab", "#c2410c"
_STYLE = {
    "axes.edgecolor": "#c3cad2",
    "axes.grid": True,
    "axes.grid.axis": "x",
    "axes.labelcolor": QUIET,
    "axes.labelsize": 9,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "font.family": ["DejaVu Sans", "sans-serif"],
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "grid.color": _GRID,
    "path.simplify": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "hlorank",
    "text.color": INK,
    "xtick.color": "#c3cad2",
    "xtick.labelcolor": QUIET,
    "ytick.labelcolor": INK,
    "ytick.left": False,
}
styled = rc_context(_STYLE)


Scale = Literal["linear", "log"]


@dataclass(frozen=True)
class Panel:
    """One quantity by family, a value per graph."""

    title: str
    unit: str
    values: Mapping[str, Sequence[float]]
    scale: Scale = "linear"


@styled
def plot_families(title: str, panels: Sequence[Panel], path: Path) -> None:
    """Panels side by side over the same families: a dot per graph, a bar at the median."""
    families = sorted(panels[0].values)
    made = figure(AROUND_ROWS + ROW * len(families), title)
    for axes, panel in zip(made.subplots(1, len(panels), sharey=True), panels, strict=True):
        axes.set_title(panel.title)
        axes.set_xlabel(panel.unit)
        rows = [panel.values[family] for family in families]
        draw_rules(axes, len(rows))
        draw_dots(axes, rows)
        draw_bars(axes, [float(np.median(row)) for row in rows])
        _scale(axes, panel)
    name_rows(made.axes[0], families)
    save(made, path)


@styled
def plot_curves(history: Sequence[Mapping[str, float]], path: Path) -> None:
    """Loss and validation tau over a training's epochs; the best epoch is marked."""
    best = max(history, key=lambda epoch: epoch["validation_tau"])
    made = figure(2.7)
    panels = (("Training loss", "loss"), ("Validation, Kendall's tau", "validation_tau"))
    for axes, (title, key) in zip(made.subplots(1, 2), panels, strict=True):
        axes.set_title(f"{title}: {best[key]:.3f} at the best epoch, {best['epoch']:g}")
        axes.set_xlabel("epoch")
        axes.grid(visible=True)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.plot([e["epoch"] for e in history], [e[key] for e in history], color=LINE)
        axes.axvline(best["epoch"], color=ACCENT, linewidth=0.8, linestyle=(0, (4, 3)))
        axes.plot(best["epoch"], best[key], "o", color=ACCENT, markersize=5)
    save(made, path)


def figure(height: float, title: str = "") -> Figure:
    """Returns an empty figure of a README's width; ``height`` is in inches."""
    made = Figure(figsize=(_WIDTH, height), layout="constrained")
    made.get_layout_engine().set(wspace=0.05)
    if title:
        made.suptitle(title, x=0.008, ha="left", fontsize=10, color=QUIET)
    return made


def save(made: Figure, path: Path) -> None:
    """Writes a figure as SVG with coordinates rounded to a hundredth of a point."""
    content = BytesIO()
    made.savefig(content, format="svg", metadata={"Date": None, "Creator": None})
    # Only inside tags, since numbers between tags are text.
    write_atomically(path, re.sub(rb"<[^>]+>", _rounded, content.getvalue()))


def _rounded(tag: re.Match[bytes]) -> bytes:
    return re.sub(rb"(\.\d\d)\d+", rb"\1", tag[0])


def draw_rules(axes: Axes, count: int) -> None:
    """Draws a line across each row as one path; a grid would be half of the file."""
    y, x = _segments(np.arange(count, dtype=float), np.zeros(count), 1)
    axes.plot(x, y, color=_GRID, linewidth=0.8, transform=axes.get_yaxis_transform(), zorder=1)


def draw_dots(axes: Axes, rows: Sequence[Sequence[float]]) -> None:
    """Draws all dots as one line with round caps; markers would triple the size of the file."""
    x = np.concatenate([np.asarray(row, float) for row in rows])
    y = np.concatenate([index + _scatter(len(row)) for index, row in enumerate(rows)])
    line = _segments(x, y, _SPECK)
    axes.plot(*line, color=_DOT, linewidth=4, solid_capstyle="round", snap=False, zorder=2)


def draw_bars(axes: Axes, centres: Sequence[float]) -> None:
    """Draws a bar at the centre of each row."""
    y = np.arange(len(centres)) - 0.34
    line = _segments(np.array(centres), y, 0.68)
    axes.plot(*line, color=INK, linewidth=2, solid_capstyle="butt", zorder=3)


def _segments(x: np.ndarray, y: np.ndarray, length: float) -> tuple[np.ndarray, np.ndarray]:
    """Returns vertical segments that start at the points, separated by NaN."""
    gap = np.full(len(x), np.nan)
    return np.stack([x, x, gap], 1).ravel(), np.stack([y, y + length, gap], 1).ravel()


def _scatter(count: int) -> np.ndarray:
    """Returns deterministic offsets that separate equal values of a row."""
    golden = (np.sqrt(5) - 1) / 2
    return ((np.arange(count) + 0.5) * golden % 1 - 0.5) * 0.5


def _scale(axes: Axes, panel: Panel) -> None:
    axes.set_xscale(panel.scale)
    low, high = (pick(map(pick, panel.values.values())) for pick in (min, max))
    wide = panel.scale == "log" and high > 3 * low
    locator = LogLocator(subs=(1, 2, 5)) if wide else MaxNLocator(6, steps=[1, 2, 5, 10])
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter("{x:g}")


def name_rows(axes: Axes, labels: Sequence[str]) -> None:
    """Writes a label before each row, the first at the top."""
    axes.yaxis.set_major_locator(FixedLocator(range(len(labels))))
    axes.set_yticklabels(labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
