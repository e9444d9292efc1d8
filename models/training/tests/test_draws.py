from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")


from hlorank_training.data.dataset import Graph
from hlorank_training.models.draws import draw_configurations, draw_graphs
from hlorank_training.models.training_settings import TrainSettings

SETTINGS = TrainSettings(configurations_per_graph=16)
GRAPHS = [
    Graph(f"g{number}", (), np.array([1, 2]), None, "large" if number else "small")
    for number in range(10)
]
"""One graph of a family, and nine of another."""


def shares(settings: TrainSettings, epochs: int = 400) -> np.ndarray:
    """The share of every graph among those that are drawn in some epochs."""
    random = np.random.default_rng(1)
    drawn = np.concatenate([draw_graphs(random, GRAPHS, settings) for _ in range(epochs)])
    assert len(drawn) == epochs * len(GRAPHS)
    return np.bincount(drawn, minlength=len(GRAPHS)) / len(drawn)


def test_every_graph_is_drawn_once_in_an_epoch():
    assert shares(SETTINGS).tolist() == [0.1] * 10


def test_families_are_drawn_evenly_and_graphs_evenly_within_their_family():
    found = shares(replace(SETTINGS, even_families=True))
    assert found[0] == pytest.approx(1 / 2, abs=0.03)
    assert found[1:] == pytest.approx([1 / 18] * 9, abs=0.015)


def frequencies(settings: TrainSettings, count: int = 64, steps: int = 3000) -> np.ndarray:
    """How often each configuration of a graph is drawn, the fastest first."""
    order = np.random.default_rng(2).permutation(count)
    graph = Graph("g", (), 1000 + order, None)
    random, found = np.random.default_rng(1), np.zeros(count)
    for _ in range(steps):
        chosen = draw_configurations(random, graph, settings)
        assert len(set(chosen.tolist())) == min(settings.configurations_per_graph, count)
        found[order[chosen]] += 1
    return found / steps


def test_configurations_are_drawn_evenly():
    assert frequencies(SETTINGS) == pytest.approx(np.full(64, 16 / 64), abs=0.04)


def test_gumbel_noise_draws_fast_configurations_a_little_more_often():
    found = frequencies(replace(SETTINGS, favour_fast=True))
    assert np.mean(found[:8]) > np.mean(found[28:36]) > np.mean(found[-8:]) > 0.1
    # The first of a draw has a chance in proportion to e to the power of (C - rank) / C.
    one = frequencies(replace(SETTINGS, favour_fast=True, configurations_per_graph=1), 8, 20_000)
    weights = np.exp((8 - np.arange(8)) / 8)
    assert one == pytest.approx(weights / weights.sum(), abs=0.012)


def test_all_configurations_of_a_small_graph_are_drawn():
    for settings in (SETTINGS, replace(SETTINGS, favour_fast=True)):
        assert (frequencies(settings, count=9, steps=3) == 1).all()
