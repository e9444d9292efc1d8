"""Comparisons of models of feature sets, and Halide's own cost model."""

import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from feature_set_examples import write_graph  # noqa: E402

from hlorank_research.__main__ import main  # noqa: E402
from hlorank_research.comparisons.feature_sets import (  # noqa: E402
    boosted_trees,
    compare_known,
    compare_unseen,
)
from hlorank_training.data.feature_graphs import read_feature_graphs  # noqa: E402
from hlorank_training.judging.feature_sets import Network  # noqa: E402


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("graphs")
    for number in range(16):
        write_graph(folder, number)
    return read_feature_graphs(folder)


def test_tables_have_every_model_chance_and_the_noise_ceiling(graphs):
    fits = {"trees": boosted_trees, "network": Network("times", "both", epochs=8)}
    for table in (compare_unseen(graphs, fits), compare_known(graphs, fits)):
        rows = {line.split("|")[1].strip(): line.split("|")[2:] for line in table.splitlines()}
        assert list(rows)[2:] == [
            "trees",
            "network",
            "a random order",
            "second pass (noise ceiling)",
        ]
        assert float(rows["trees"][0]) > 0.3 and float(rows["network"][0]) > 0.3
        assert float(rows["second pass (noise ceiling)"][0]) == 1


def test_the_command_names_the_folder_that_is_wrong(tmp_path, monkeypatch):
    command = ["research", "compare", "feature-set", "--data", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit, match=r"--data: .* has no measured graphs"):
        main()


def test_the_shipped_cost_model_predicts_what_halide_prints():
    pytest.importorskip("halide", reason="halide is not installed")
    from hlorank_research.comparisons.halide_cost import HalideCostModel, trained_again
    from hlorank_training.data.feature_graphs import FeatureGraph
    from hlorank_training.measuring.halide.adams2019 import apply_schedule
    from hlorank_training.measuring.halide.features import FEATURE_SET
    from hlorank_training.measuring.halide.random_pipelines import random_pipeline
    from hlorank_training.measuring.halide.schedule import Draw

    found = [apply_schedule(random_pipeline(6), Draw(0, beam=beam)) for beam in (1, 2, 4)]
    printed = [schedule.predicted_milliseconds for schedule in found]
    graph = FeatureGraph(
        name="p00006",
        feature_set=FEATURE_SET,
        node_features=found[0].node_features,
        edges=found[0].edges,
        config_features=np.stack([schedule.config_features for schedule in found]),
        nanoseconds=np.array([3_000_000, 2_000_000, 1_000_000]),
    )
    shipped = HalideCostModel().scores(graph)
    assert shipped == pytest.approx(printed, rel=1e-3)
    again = trained_again([graph], 40).scores(graph)
    best = graph.nanoseconds.min() / 1e6
    measured = graph.nanoseconds / 1e6
    losses = [np.mean((best / scores - best / measured) ** 2) for scores in (shipped, again)]
    assert losses[1] < losses[0]
