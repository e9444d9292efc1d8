"""What a learned model has to beat: costs that need no training, and trees on summed features."""

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

_STEP_ELEMENTS = 512
"""What one more step of a loop costs, in elements moved."""


def analytical_cost(graph: Graph) -> np.ndarray:
    """Bytes that a configuration moves, f64 [c]; for tiles with a price for every step.

    Layouts: the elements that are copied into other orders, more the further apart neighbours
    lie. Tiles: the number of steps times what one of them reads.
    """
    totals = _summed(graph)
    if _is_tile(graph):
        steps, read = totals["loop"][:, STEPS], totals["loop"][:, READ]
        return np.exp(steps) * (np.exp(read) + _STEP_ELEMENTS)
    return totals["amounts"].sum(1)


class BoostedTrees:
    """Gradient-boosted trees on features summed over nodes, as compilers' cost models use them.

    They see all that the neural model is told of a configuration, but not which node is where.
    """

    def __init__(self, graphs: Sequence[Graph], seed: int = 1):
        self._trees = HistGradientBoostingRegressor(max_iter=300, random_state=seed)
        features = np.concatenate([_features(graph) for graph in graphs])
        runtimes = np.concatenate([_relative(graph.runtimes) for graph in graphs])
        # Several threads wait for each other by spinning, for minutes on a machine with other work.
        with threadpool_limits(1):
            self._trees.fit(features, runtimes)

    def score(self, graph: Graph) -> np.ndarray:
        """Predicted log run time over the graph's mean, f64 [c]."""
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
    """By kind, f64 [c, columns]: sums over the graph's nodes; ``loop`` once a row."""
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
            loop, pieces = TilePart(1).words(rows)
            kinds = {"loop": loop, "bounds": config, "pieces": (pieces * real).sum(1)}
        else:
            copies, amounts = LayoutPart(1, 0).words(rows)
            kinds = {"copies": (copies * real).sum(1), "amounts": (amounts.mT * real).sum(1)}
    return {kind: value.double().numpy() for kind, value in (kinds | {"static": static}).items()}
