"""Baselines: an analytical cost without training, and boosted trees on summed features."""

from collections.abc import Sequence

import numpy as np
import torch
from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits

from hlorank_training.data.batch import Bucket, make_batch
from hlorank_training.data.dataset import Graph
from hlorank_training.models.graph_layers import symmetric_log
from hlorank_training.models.layout_part import LayoutPart
from hlorank_training.models.segment_batch import SegmentBatch
from hlorank_training.models.tile_part import READ, STEPS, TilePart
from hlorank_training.models.vector_part import VectorTilePart

_STEP_ELEMENTS = 512
"""Cost of one loop step, in moved elements."""


def analytical_cost(graph: Graph) -> np.ndarray:
    """Returns an estimate of the data that each configuration moves: f64 [c].

    Layouts: the elements that are copied to another order, weighted by their strides. Tiles: the
    number of steps times the elements that a step reads plus a cost per step.
    """
    totals = _summed(graph)
    if _is_tile(graph):
        steps = totals["loop"][:, STEPS]
        read = totals["loop"][:, READ]
        return np.exp(steps) * (np.exp(read) + _STEP_ELEMENTS)
    return totals["amounts"].sum(1)


class BoostedTrees:
    """Gradient-boosted trees on features summed over nodes, as in compilers' cost models.

    The trees have the same information on a configuration as the neural model, without the graph.
    """

    def __init__(self, graphs: Sequence[Graph], seed: int = 1):
        self._trees = HistGradientBoostingRegressor(max_iter=300, random_state=seed)
        features = np.concatenate([_features(graph) for graph in graphs])
        runtimes = np.concatenate([_relative(graph.runtimes) for graph in graphs])
        # Several threads spin while they wait for each other, for minutes on a busy machine.
        with threadpool_limits(1):
            self._trees.fit(features, runtimes)

    def score(self, graph: Graph) -> np.ndarray:
        """Returns the predicted log run time relative to the graph's mean: f64 [c]."""
        with threadpool_limits(1):
            return self._trees.predict(_features(graph))


def _relative(runtimes: np.ndarray) -> np.ndarray:
    logarithms = np.log(runtimes)
    return logarithms - logarithms.mean()


def _is_tile(graph: Graph) -> bool:
    return graph.segments[0].local.ndim == 2


def _features(graph: Graph) -> np.ndarray:
    totals = _summed(graph)
    return np.concatenate([totals[key] for key in sorted(totals)], 1)


def _summed(graph: Graph) -> dict[str, np.ndarray]:
    """Returns sums over the graph's nodes by kind, f64 [c, columns]; ``loop`` is per row."""
    count = len(graph.runtimes)
    batch = make_batch([graph], [np.arange(count)])
    totals: dict[str, np.ndarray] = {}
    for bucket in batch.buckets:
        for kind, rows in _bucket_sums(bucket).items():
            total = totals.setdefault(kind, np.zeros((count, rows.shape[1])))
            np.add.at(total, bucket.configuration, rows[bucket.row])
    return totals


def _bucket_sums(bucket: Bucket) -> dict[str, np.ndarray]:
    opcode, features, operands, mask, segment, config = map(torch.from_numpy, bucket.inputs)
    rows = SegmentBatch(opcode, features, operands, mask, segment, config)
    static = (symmetric_log(features) * mask.unsqueeze(-1)).sum(1)[segment]
    real = mask[segment].unsqueeze(-1)
    with torch.no_grad():
        if config.ndim == 2:
            part = VectorTilePart(1) if config[:, 16:22].any() else TilePart(1)
            loop, pieces = part.words(rows)
            kinds = {"loop": loop, "bounds": config, "pieces": (pieces * real).sum(1)}
        else:
            copies, amounts = LayoutPart(1, 0).words(rows)
            kinds = {"copies": (copies * real).sum(1), "amounts": (amounts.mT * real).sum(1)}
    return {kind: value.double().numpy() for kind, value in (kinds | {"static": static}).items()}
