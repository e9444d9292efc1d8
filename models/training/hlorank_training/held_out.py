"""Quality of a model on the graphs that its training held out, as its manifest tells it."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .dataset import Graph
from .evaluate import evaluate, moved_bytes, summary
from .prepare import Prepared, split_rule

Score = Callable[[Graph], np.ndarray]


def held_out_quality(task: str, prepared: Prepared, score: Score) -> dict[str, Any]:
    """Means over the held-out graphs, per graph too; for layouts the moved bytes beside them."""
    graphs = prepared.graphs(prepared.split.test)
    apart = split_rule(task, prepared.families).held_out_families
    qualities = evaluate(graphs, score)
    known = [q for q in qualities if prepared.families[q.name] not in apart]
    unseen = [q for q in qualities if prepared.families[q.name] in apart]
    measured = {"split": "whole graphs held out, chosen by the SHA-256 of their names"}
    measured |= summary(known)
    if unseen:
        measured |= _prefixed("unseen_family", summary(unseen))
    if task == "layout":
        baseline = evaluate(graphs, lambda graph: moved_bytes(prepared.tuning_files[graph.name]))
        measured |= _prefixed("moved_bytes_baseline", summary(baseline))
    return {"measured_quality": measured, "per_graph": {q.name: q.values for q in qualities}}


def _prefixed(prefix: str, values: dict[str, Any]) -> dict[str, Any]:
    """Flat keys: the server passes on names with a number each, and nothing nested."""
    return {f"{prefix}.{key}": value for key, value in values.items()}
