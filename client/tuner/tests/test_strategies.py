import numpy as np
import pytest

from hlorank_tune.measure.constrain import ConfigurableNode
from hlorank_tune.xla.layouts import LayoutSpace
from hlorank_tune.xla.problem import Genetic, Random

NODES = 20
BATCH, STEPS = 32, 40
SPACE = LayoutSpace([ConfigurableNode(i, i, (3, 3, 2)) for i in range(NODES)])
CHOICES = np.tile([7, 7, 3], NODES)


def separable(seed):
    """A cost between 0, of one candidate alone, and 1: the mean of a cost for each number."""
    random = np.random.default_rng(seed)
    tables = [random.permutation(count) / (count - 1) for count in CHOICES]
    return lambda candidates: np.mean(
        [table[numbers] for table, numbers in zip(tables, candidates.T, strict=True)], axis=0
    )


def strategies(seed):
    random = [np.random.default_rng(seed) for _ in range(2)]
    return {
        "random": Random(SPACE, random[0], BATCH),
        "genetic": Genetic(SPACE, random[1], BATCH),
    }


def searched(strategy, cost, steps=STEPS):
    """All costs, after so many steps."""
    costs = []
    for _ in range(steps):
        asked = strategy.ask()
        assert len(asked) == BATCH
        costs.append(cost(asked))
        strategy.update(asked, costs[-1])
    return np.concatenate(costs)


@pytest.mark.parametrize("seed", range(5))
def test_searches_that_learn_find_better_than_draws_do(seed):
    cost = separable(seed)
    best = {name: searched(s, cost).min() for name, s in strategies(seed).items()}
    assert best["genetic"] < 0.5 * best["random"]


@pytest.mark.parametrize("name", ["random", "genetic"])
@pytest.mark.parametrize("share", [0.5, 1.0])
@pytest.mark.filterwarnings("error")
def test_candidates_that_do_not_work_stop_no_search(name, share):
    works = np.random.default_rng(0)
    cost = separable(0)

    def broken(candidates):
        return np.where(works.random(len(candidates)) < share, np.inf, cost(candidates))

    costs = searched(strategies(0)[name], broken)
    assert np.isfinite(costs).any() == (share < 1)


def test_the_same_seed_asks_the_same():
    cost = separable(2)
    once, again = (searched(strategies(7)["genetic"], cost, steps=5) for _ in range(2))
    assert (once == again).all()


def changed(asked, start):
    """The number of changed nodes of every candidate."""
    return (asked != start).reshape(BATCH, NODES, 3).any(axis=2).sum(axis=1)


def test_a_search_begins_at_the_default_unless_it_is_told_otherwise():
    assert (changed(strategies(0)["genetic"].ask(), 0) <= 3).sum() >= BATCH // 2
    start = SPACE.random(np.random.default_rng(5), 1)
    told = Genetic(SPACE, np.random.default_rng(0), BATCH, start).ask()
    assert (changed(told, start) <= 3).sum() >= BATCH // 2


def test_a_parent_keeps_the_cost_that_was_told():
    start = SPACE.random(np.random.default_rng(5), 1)
    strategy = Genetic(SPACE, np.random.default_rng(0), 4000, start)
    worse = SPACE.random(np.random.default_rng(6), 40)
    strategy.update(start, np.array([0.1]))
    strategy.update(worse, np.full(40, 0.9))
    changed = (strategy.ask() != start).reshape(-1, NODES, 3).any(axis=2).sum(axis=1)
    assert (changed <= 3).any(), "of 4,000 pairs of 16 parents some are twice the best"
