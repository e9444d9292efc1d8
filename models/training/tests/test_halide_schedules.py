"""Schedules of Halide's autoscheduler, and their features."""

import runpy
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("halide", reason="halide is not installed")

from hlorank_training.measuring.halide.adams2019 import (
    Draw,
    apply_schedule,
    shipped_weights,
    stage_graph,
)
from hlorank_training.measuring.halide.features import CONFIG_FEATURES, NODE_FEATURES

EXAMPLE = Path(__file__).parents[1] / "examples/rank_schedules.py"
PRINTED = """
Node: out
  Stage 0:
  Stage 1:
  pointwise: 0 input: 0
Node: blur
  Stage 0:
  pointwise: 1 input: 0
Node: image
  Stage 0:
  pointwise: 1 input: 1
Edge: blur -> out.update(0)
Edge: image -> blur
Node: out
  Stage 0:
"""


def test_stages_and_edges_are_read_from_what_the_autoscheduler_prints():
    stages, edges = stage_graph(PRINTED)
    assert stages == ("out.update(0)", "out", "blur")
    assert edges.tolist() == [[0, 1], [0, 2]]


def test_a_draw_gives_always_the_same_schedule_with_the_features_of_every_stage():
    assert (len(NODE_FEATURES), len(CONFIG_FEATURES)) == (287, 39)
    assert len(set(NODE_FEATURES) | set(CONFIG_FEATURES)) == 287 + 39
    blur = runpy.run_path(str(EXAMPLE))["blur"]
    draws = (Draw(0), Draw(5, noise=0.8, keep=50), Draw(5, noise=0.8, keep=50))
    one, other, again = (apply_schedule(blur(), draw) for draw in draws)
    stages = len(one.stages)
    assert one.node_features.shape == (stages, 287) and one.config_features.shape == (stages, 39)
    assert np.array_equal(one.node_features, other.node_features)
    assert not np.array_equal(one.config_features, other.config_features)
    assert other.digest == again.digest != one.digest
    assert np.array_equal(one.edges, other.edges)
    assert set(one.edges.ravel()) == set(range(stages)), "all are connected"
    assert "vectorize" in one.source + other.source


def test_the_weights_are_those_of_the_cost_model():
    assert [weights.size for weights in shipped_weights()] == [2240, 8, 936, 24, 1024, 32]
    assert all(np.isfinite(weights).all() and weights.any() for weights in shipped_weights())
