"""Markdown tables."""

from collections.abc import Mapping, Sequence
from typing import Any

from tabulate import tabulate


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]], words: int | None = None) -> str:
    """Returns a table of text cells; columns after the first ``words`` are numbers."""
    texts = len(head) if words is None else words
    sides = ["left"] * texts + ["right"] * (len(head) - texts)
    return tabulate(rows, head, "pipe", disable_numparse=True, colalign=sides)


QUALITY_HEAD = ("tau", "pairs in order", "top 1", "top 5", "top 10")
_SLOWDOWNS = ("top1_slowdown", "top5_slowdown", "top10_slowdown")


def quality_cells(values: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Returns the cells of the columns in ``QUALITY_HEAD``."""
    ratios = [f"{values[prefix + key]:.2f}" for key in ("kendall_tau", "ordered_pair_accuracy")]
    return [*ratios, *(f"{values[prefix + key]:.1%}" for key in _SLOWDOWNS)]


def without_model(measured: Mapping[str, Any]) -> list[list[str]]:
    """Returns the rows of choices without a model: a random choice, and the default."""
    slowdowns = [f"{measured[f'random_{key}']:.1%}" for key in _SLOWDOWNS]
    default = measured.get("default_slowdown")
    shown = "" if default is None else f"{default:.1%}"
    return [["random", "0.00", "0.50", *slowdowns], ["always the default", "", "", shown, "", ""]]
