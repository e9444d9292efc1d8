"""Candidates of fusions, and the annealing that draws them, without a compiler."""

import numpy as np
import pytest

from hlorank_tune.measure.fusion.graph import FusionGraph
from hlorank_tune.measure.fusion.kernels import DEFAULT, configuration, offender
from hlorank_tune.measure.fusion.write import Builder
from hlorank_tune.measure.schema import ShapeProto
from hlorank_tune.xla.fusions import FusionAnnealing, FusionSpace

FLOATS = ShapeProto(element_type=11, dimensions=[4, 8])
BATCH, STEPS = 64, 15


def program(layers):
    """x -> x shifted to the left and right and added, again and again: many places if all fuse."""
    builder = Builder("shifts")
    main = builder.computation("main")
    value = builder.parameter(main, 0, FLOATS)
    for _ in range(layers):
        left, right = (builder.add(main, "reverse", FLOATS, [value]).id for _ in range(2))
        value = builder.add(main, "add", FLOATS, [left, right]).id
    return FusionGraph(builder.finish_module(main, builder.add(main, "negate", FLOATS, [value]).id))


GRAPH = program(12)
COMPILERS = [slot for slot in GRAPH.slots if GRAPH.opcode(slot) == "reverse"]
SPACE = FusionSpace(GRAPH, COMPILERS)


def costs(candidates):
    """Between 1 and 2: the mean of a weight for each bit that differs from one of the program."""
    random = np.random.default_rng(0)
    best = random.random(len(GRAPH.slots)) < 0.4
    weights = random.random(len(GRAPH.slots))
    return 1 + (SPACE.bits(candidates) ^ best) @ weights / weights.sum()


def annealing(seed, start=None, batch=BATCH):
    begin = SPACE.default[None] if start is None else start
    return FusionAnnealing(SPACE, np.random.default_rng(seed), batch, STEPS, begin)


def searched(strategy, cost=costs, steps=STEPS):
    """The lowest cost of each step."""
    lowest = []
    for _ in range(steps):
        asked = strategy.ask()
        assert not lowest or len(asked) == BATCH, "later steps ask for neighbours of every chain"
        found = cost(asked)
        strategy.update(asked, found)
        lowest.append(found.min())
    return lowest


def test_the_program_itself_has_no_bits_and_the_compilers_choice_has_its_own():
    assert not SPACE.default.any() and len(SPACE.default) == 1 + len(GRAPH.slots)
    assert SPACE.fused(SPACE.compilers) == frozenset(COMPILERS)
    assert SPACE.fused(SPACE.default) == frozenset(COMPILERS), "which its neighbours begin from"


@pytest.mark.parametrize("seed", range(3))
def test_every_candidate_is_within_the_limits_and_stays_what_it_is(seed):
    random = np.random.default_rng(seed)
    drawn = SPACE.random(random, 40)
    for candidate in np.concatenate([drawn, SPACE.mutated(random, drawn)]):
        fused = SPACE.fused(candidate)
        formed = configuration(GRAPH, fused)
        assert candidate[0] == 1 and formed.fused == fused
        members = (kernel.members for kernel in formed.kernels)
        assert all(offender(GRAPH, each, DEFAULT) is None for each in members)


def test_a_neighbour_changes_one_slot_or_a_few_or_all_of_an_opcode():
    start = np.repeat(SPACE.default[None], 400, axis=0)
    bits = SPACE.bits(SPACE.mutated(np.random.default_rng(0), start))
    changed = bits ^ SPACE.bits(start)
    assert (changed.sum(axis=1) == 1).mean() > 0.3
    assert ((changed.sum(axis=1) > 1) & (changed.sum(axis=1) < 9)).any()
    unfused = ~bits.any(axis=1)
    assert unfused.any(), "all reverses are written, which alone are fused"
    assert (start == 0).all(), "the candidates themselves are kept"


def test_a_search_begins_at_the_compilers_choice_and_at_random_ones():
    asked = annealing(0).ask()
    assert len(asked) == 8
    assert (asked[0] == SPACE.compilers).all()
    assert len(np.unique(asked, axis=0)) >= 7
    four = SPACE.random(np.random.default_rng(1), 6)
    assert (annealing(0, four).ask()[:4] == four[:4]).all()
    assert (annealing(0, batch=8).ask() == SPACE.compilers).all(), "one chain, to measure"


@pytest.mark.parametrize("seed", range(2))
def test_annealing_finds_better_than_draws_do(seed):
    drawn = costs(SPACE.random(np.random.default_rng(seed), BATCH * STEPS))
    lowest = searched(annealing(seed))
    assert min(lowest) < drawn.min() and min(lowest) < lowest[0]


def test_it_is_hot_at_first_and_cold_in_the_end():
    def moves(steps):
        strategy = annealing(0)
        searched(strategy, steps=steps)
        before = strategy._current.copy()
        asked = strategy.ask()
        strategy.update(asked, strategy._costs[strategy._chains] * 1.02)
        return (strategy._current != before).any(axis=1).mean()

    assert moves(1) > 0.9 and moves(STEPS) < 0.1


def test_the_same_seed_asks_the_same():
    assert searched(annealing(3)) == searched(annealing(3)) != searched(annealing(4))


@pytest.mark.parametrize("share", [0.3, 1.0])
@pytest.mark.filterwarnings("error")
def test_candidates_without_a_prediction_stop_no_search(share):
    lost = np.random.default_rng(0)

    def broken(candidates):
        return np.where(lost.random(len(candidates)) < share, np.inf, costs(candidates))

    assert np.isfinite(searched(annealing(0), broken)).any() == (share < 1)
