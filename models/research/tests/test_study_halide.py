from types import SimpleNamespace

import numpy as np
import pytest

from hlorank_research.studies.halide import _result, expected_fastest, table
from hlorank_training.data.feature_graphs import FeatureGraph

SECOND = np.array([100.0, 50, 200, 80, 120, 90, 300, 40])
FIRST = np.array([100.0, 55, 210, 78, 119, 95, 290, 60])
"""Microseconds of two passes; the greedy schedule is the first."""


class FakeClient:
    """Ranks schedules by their first feature."""

    def rank(self, graph, configurations, **_):
        return SimpleNamespace(best=np.argsort(configurations.values()[:, 0, 0], kind="stable"))


def judged(order):
    """The result of a pipeline of two stages whose schedules are ranked in this order."""
    config = np.zeros((8, 2, 39), np.float32)
    config[order, :, 0] = np.arange(8)[:, None]
    passes = np.stack([FIRST, SECOND]) * 1e3
    nodes, edges = np.zeros((2, 287), np.float32), np.array([[0, 1]])
    graph = FeatureGraph(
        "p1", "halide-adams2019-3", nodes, edges, config, passes.min(0).astype(np.int64), passes
    )
    record = {
        "stages": ["a", "b"],
        "rounds": [10, 10],
        "noise_between_passes": 0.02,
        "search_seconds": [0.5] * 8,
        "compile_seconds": [1.0] * 8,
    }
    return _result(graph, record, FakeClient(), None)


def test_the_fastest_of_few_is_chosen_by_one_pass_and_judged_by_the_other():
    result = judged([2, 3, 7, 1, 4, 5, 0, 6])
    assert result.first == 2.0, "the model's first is the third schedule"
    assert result.chosen == 0.5, "the second schedule is the fastest of the first pass"
    assert result.best == 0.5 and result.schedules == 8 and result.stages == 2
    assert judged([2, 3, 4, 5, 6, 7, 1, 0]).chosen == 0.8


def test_the_greedy_schedule_is_the_choice_if_it_is_the_fastest():
    assert judged([2, 4, 6, 0, 3, 1, 5, 7]).chosen == 0.8
    slow = np.array([100.0, 200, 300])
    assert expected_fastest(slow / 100, slow / 100, 2) == 1.0


def test_seconds_are_those_of_what_is_compiled_and_measured():
    result = judged([2, 3, 7, 1, 4, 5, 0, 6])
    assert result.draw_seconds == 4.0
    assert result.chosen_seconds == pytest.approx(6, abs=0.1)
    assert result.all_seconds == pytest.approx(8, abs=0.1)
    few, all_of_them = (result.chosen_seconds - 6, result.all_seconds - 8)
    assert 0 < few < all_of_them == pytest.approx(20 * np.minimum(FIRST, SECOND).sum() / 1e6)


def test_random_choices_are_judged_by_their_mean():
    first, second = FIRST / FIRST[0], SECOND / SECOND[0]
    random = np.random.default_rng(0)
    draws = [random.permutation(np.arange(1, 8))[:3] for _ in range(20_000)]
    fastest = [min([0, *draw], key=lambda number: first[number]) for draw in draws]
    assert expected_fastest(first, second, 3) == pytest.approx(second[fastest].mean(), rel=0.01)
    assert expected_fastest(first, second, 7) == second[1]


def test_the_table_has_means_of_ratios_and_totals_of_seconds():
    lines = table([judged([2, 3, 7, 1, 4, 5, 0, 6]), judged([1, 3, 7, 2, 4, 5, 0, 6])]).splitlines()
    assert len(lines) == 5 and len(set(map(len, lines))) == 1
    cells = [cell.strip() for cell in lines[-1].split("|")]
    assert cells[1] == "geometric mean, total" and cells[6:10] == ["1.000", "0.500", *cells[8:10]]
    assert cells[10] == "8 s" and cells[13] == "16 s"
