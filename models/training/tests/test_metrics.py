"""Splits, and measures of quality."""

import numpy as np
import pytest

from hlorank_training.data.ranking_quality import (
    kendall_tau,
    ordered_pair_accuracy,
    random_slowdown,
    top_slowdown,
)
from hlorank_training.data.split import SplitRule, split

FAMILIES = {f"{family}_{i}": family for family in ("a", "b", "c") for i in range(20)}


def test_no_name_is_used_twice_and_none_is_lost():
    parts = split(FAMILIES, SplitRule())
    names = [*parts.train, *parts.validation, *parts.test]
    assert sorted(names) == sorted(FAMILIES)


def test_an_unseen_family_is_only_in_the_test():
    parts = split(FAMILIES, SplitRule(unseen_families=1))
    apart = {FAMILIES[name] for name in parts.unseen_family}
    assert len(apart) == 1 and len(parts.unseen_family) == 20
    assert set(parts.unseen_family) <= set(parts.test)
    assert not apart & {FAMILIES[name] for name in (*parts.train, *parts.validation)}
    assert len(parts.test) == 20 + 8


def test_the_split_does_not_depend_on_the_order_of_names():
    backwards = dict(reversed(FAMILIES.items()))
    assert split(backwards, SplitRule()) == split(FAMILIES, SplitRule())


RUNTIMES = np.array([30, 10, 20, 40])


def test_the_right_order_has_tau_one_and_the_reverse_minus_one():
    assert kendall_tau(RUNTIMES, RUNTIMES) == pytest.approx(1)
    assert kendall_tau(-RUNTIMES, RUNTIMES) == pytest.approx(-1)


def test_constant_scores_have_tau_zero():
    assert kendall_tau(np.zeros(4), RUNTIMES) == 0


def test_equal_scores_count_as_wrong_in_pair_accuracy():
    assert ordered_pair_accuracy(np.zeros(4), RUNTIMES) == 0
    assert ordered_pair_accuracy(RUNTIMES, RUNTIMES) == 1
    assert ordered_pair_accuracy(np.array([1, 0, 0, 2]), RUNTIMES) == pytest.approx(5 / 6)


def test_ties_in_scores_are_broken_by_index():
    assert top_slowdown(np.zeros(4), RUNTIMES, 1) == pytest.approx(2)
    assert top_slowdown(np.zeros(4), RUNTIMES, 2) == 0


def test_random_slowdown_is_the_mean_of_all_choices():
    # By hand: the minimum of each of the six pairs.
    pairs = [min(a, b) for i, a in enumerate(RUNTIMES) for b in RUNTIMES[i + 1 :]]
    assert random_slowdown(RUNTIMES, 1) == pytest.approx(RUNTIMES.mean() / 10 - 1)
    assert random_slowdown(RUNTIMES, 2) == pytest.approx(np.mean(pairs) / 10 - 1)
    assert random_slowdown(RUNTIMES, 9) == pytest.approx(0)
