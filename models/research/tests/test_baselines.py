import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from hlorank_research.comparisons.baselines import BoostedTrees, analytical_cost
from hlorank_training.data.dataset import Graph, Segment
from hlorank_training.judging.evaluate import mean_of
from hlorank_training.metrics.ranking import kendall_tau

PARAMETER, TANH = 63, 102


def elementwise(rows: int, columns: int) -> Graph:
    """An elementwise kernel whose run time is what its tiles read, plus a price for each."""
    tiles = [(r, c) for r in (2, 4, 8) for c in (4, 8, 16)]
    features = np.zeros((2, 140), np.float32)
    features[:, 21:23] = rows, columns
    features[1, 0] = 1
    config = np.zeros((len(tiles), 24), np.float32)
    config[:, 8:10] = tiles
    config[:, 15] = np.prod(tiles, 1)
    count = rows * columns / np.prod(tiles, 1)
    runtimes = (rows * columns + 512 * count).astype(np.int64)
    operands = np.array([[0, 0], [1, 0]], np.float32)
    opcode = np.array([PARAMETER, TANH])
    segment = Segment(opcode, features, operands, config, np.arange(len(tiles)))
    return Graph(f"k_{rows}_{columns}", (segment,), runtimes, int(runtimes[-1]))


def test_the_analytical_cost_of_a_tile_is_what_it_reads_and_a_price_a_step():
    graph = elementwise(16, 32)
    assert kendall_tau(analytical_cost(graph), graph.runtimes) == 1


def test_boosted_trees_learn_an_order_that_carries_over_to_another_shape():
    shapes = [(16, 32), (32, 64), (64, 32), (16, 64), (32, 32)] * 3
    trees = BoostedTrees([elementwise(*shape) for shape in shapes])
    unseen = elementwise(64, 64)
    assert kendall_tau(trees.score(unseen), unseen.runtimes) > 0.9


def test_an_ensemble_scores_the_mean_of_its_models():
    graph = elementwise(16, 32)
    both = mean_of([lambda _: np.array([1.0, 3.0]), lambda _: np.array([3.0, 4.0])])
    assert both(graph).tolist() == [2.0, 3.5]
