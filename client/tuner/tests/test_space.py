"""Layouts as vectors of numbers, and the strategies that search them."""

from itertools import permutations
from math import factorial

import numpy as np
import pytest

from hlorank import Layouts
from hlorank_tune.measure.constrain import ConfigurableNode, configurable_nodes, constrained
from hlorank_tune.measure.schema import HloModuleProto
from hlorank_tune.xla.layouts import Genetic, LayoutSpace

RANKS = [(2, 3, 4), (5, 6, 1), (0, 2, 2), (4, 4, 0), (3, 1, 2)]


def space_of(*ranks):
    return LayoutSpace([ConfigurableNode(10 + i, 100 + i, r) for i, r in enumerate(ranks)])


@pytest.fixture
def random():
    return np.random.default_rng(1)


def drawn(space, random, count=500):
    """Draws, and what became of them."""
    draws = space.random(random, count)
    return np.concatenate([draws, space.mutated(random, draws)])


def test_what_is_drawn_is_a_permutation_or_nothing_for_every_rank(random):
    space = space_of(*RANKS)
    for candidate in drawn(space, random):
        for entry, ranks in zip(space.configuration(candidate), RANKS, strict=True):
            for order, rank in zip(entry, ranks, strict=True):
                assert order == () or (rank > 1 and sorted(order) == list(range(rank)))


@pytest.mark.parametrize("rank", [2, 3, 4, 5, 6])
def test_draws_reach_every_order(rank, random):
    space = space_of((rank, 0, 1))
    orders = {space.configuration(c)[0][0] for c in drawn(space, random, 20 * factorial(rank))}
    assert orders == {(), *permutations(range(rank))}


def test_the_default_leaves_everything_to_the_compiler():
    space = space_of(*RANKS)
    assert space.configuration(space.default) == (((), (), ()),) * len(RANKS)
    assert (space.values(space.default[None]) == -1).all()


def test_a_candidate_its_values_and_its_configuration_are_one(random):
    space = space_of(*RANKS)
    candidates = drawn(space, random)
    values = space.values(candidates)
    assert values.shape == (len(candidates), len(RANKS), 3, 6) and values.dtype == np.int8
    for candidate, of_slots in zip(candidates, values, strict=True):
        configuration = space.configuration(candidate)
        assert (space.candidate(configuration) == candidate).all()
        for entry, slot in zip(configuration, of_slots.tolist(), strict=True):
            assert [[*order, *[-1] * (6 - len(order))] for order in entry] == slot
    layouts = Layouts(values)
    assert (len(layouts), layouts.slots) == (len(candidates), len(RANKS))


def changed(some, others):
    """The number of nodes in which each candidate differs from another."""
    nodes = (some != others).reshape(len(some), -1, 3)
    return nodes.any(axis=2).sum(axis=1)


def test_a_mutation_changes_at_most_three_nodes_and_often_each_number_of_them(random):
    space = space_of(*[(4, 4, 4)] * 12)
    before = space.random(random, 400)
    kept = before.copy()
    after = space.mutated(random, before)
    assert (before == kept).all(), "what it was made of stays"
    counts = changed(before, after)
    assert counts.max() == 3 and set(counts) >= {1, 2, 3}
    assert (counts == 0).mean() < 0.05


def test_a_seed_tells_what_is_drawn():
    space = space_of(*RANKS)
    one, same, other = (drawn(space, np.random.default_rng(seed)) for seed in (3, 3, 4))
    assert (one == same).all() and (one != other).any()


def test_a_module_obeys_what_a_configuration_says(random):
    module = HloModuleProto(name="dot", entry_computation_id=1)
    entry = module.computations.add(id=1, name="main", root_id=3)
    for identity in (1, 2):
        entry.instructions.add(
            id=identity, opcode="parameter", name=f"p{identity}", parameter_number=identity - 1
        )
    entry.instructions.add(id=3, opcode="dot", name="dot", operand_ids=[1, 2])
    for instruction in entry.instructions:
        instruction.shape.element_type = 11
        instruction.shape.dimensions.extend([4, 4])
        instruction.shape.layout.minor_to_major.extend([1, 0])
    nodes = configurable_nodes(module)
    space = LayoutSpace(nodes)
    for candidate in space.random(random, 50):
        configuration = space.configuration(candidate)
        edited = constrained(module, nodes, configuration)
        calls = [i for i in edited.computations[0].instructions if i.opcode == "custom-call"]
        orders = [tuple(call.shape.layout.minor_to_major) for call in calls]
        output, *operands = configuration[0]
        assert orders == [order for order in (*operands, output) if order]


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


def genetic(seed, start=SPACE.default[None], batch=BATCH):
    return Genetic(SPACE, np.random.default_rng(seed), batch, start)


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
    drawn = cost(SPACE.random(np.random.default_rng(seed), BATCH * STEPS))
    assert searched(genetic(seed), cost).min() < 0.5 * drawn.min()


@pytest.mark.parametrize("share", [0.5, 1.0])
@pytest.mark.filterwarnings("error")
def test_candidates_that_do_not_work_stop_no_search(share):
    works = np.random.default_rng(0)
    cost = separable(0)

    def broken(candidates):
        return np.where(works.random(len(candidates)) < share, np.inf, cost(candidates))

    costs = searched(genetic(0), broken)
    assert np.isfinite(costs).any() == (share < 1)


def test_the_same_seed_asks_the_same():
    cost = separable(2)
    once, again = (searched(genetic(7), cost, steps=5) for _ in range(2))
    assert (once == again).all()


def test_a_search_begins_at_the_default_unless_it_is_told_otherwise():
    assert (changed(genetic(0).ask(), 0) <= 3).sum() >= BATCH // 2
    start = SPACE.random(np.random.default_rng(5), 1)
    told = genetic(0, start).ask()
    assert (changed(told, start) <= 3).sum() >= BATCH // 2


def test_a_parent_keeps_the_cost_that_was_told():
    start = SPACE.random(np.random.default_rng(5), 1)
    strategy = genetic(0, start, 4000)
    worse = SPACE.random(np.random.default_rng(6), 40)
    strategy.update(start, np.array([0.1]))
    strategy.update(worse, np.full(40, 0.9))
    children = strategy.ask()
    assert (changed(children, start) <= 3).any(), "of 4,000 pairs some are twice the best"
