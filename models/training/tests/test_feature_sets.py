"""Graphs of named features: read, learned from, and judged."""

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("sklearn", reason="scikit-learn is not installed")
pytest.importorskip("scipy", reason="scipy is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from hlorank_tune.measure.atomic_files import read_json, write_json  # noqa: E402

from hlorank_training.__main__ import main  # noqa: E402
from hlorank_training.data.feature_graphs import held_out_folds, read_feature_graphs  # noqa: E402
from hlorank_training.feature_set_runs import train_members  # noqa: E402
from hlorank_training.models.feature_set_model import (  # noqa: E402
    FeatureSetModel,
    FeatureSetSettings,
    make_batch,
)
from hlorank_training.models.train_feature_sets import (  # noqa: E402
    FeatureSetTraining,
    loss_of,
    train_feature_set,
)
from hlorank_training.shipping.feature_set_artifact import _arrays, _write_onnx  # noqa: E402
from hlorank_training.shipping.onnx_model import session  # noqa: E402


def write_feature_graph(folder, number, **changed):
    """A chain whose nodes take as long as they have steps, and twice as long if they are odd."""
    random = np.random.default_rng(number)
    nodes, configs = 3 + number % 4, 24
    odd = (np.arange(nodes) % 2).astype(np.float32)
    steps = random.integers(1, 1000, (configs, nodes, 1)).astype(np.float32)
    arrays = {
        "feature_set": np.frombuffer(b"loops-1", np.uint8),
        "node_features": np.stack([odd, 1 - odd], 1),
        "edge_index": np.array([[node + 1, node] for node in range(nodes - 1)], np.int64),
        "config_features": np.concatenate([steps, np.sqrt(steps)], -1),
        "config_runtime": (1000 * (steps[..., 0] * (1 + odd)).sum(1)).astype(np.int64),
    }
    np.savez(folder / f"g{number:02d}.npz", **{**arrays, **changed})
    passes = arrays["config_runtime"].tolist()
    write_json(folder / f"g{number:02d}.json", {"first_pass": passes, "second_pass": passes})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("graphs")
    for number in range(16):
        write_feature_graph(folder, number)
    return folder


@pytest.fixture(scope="module")
def graphs(folder):
    return read_feature_graphs(folder)


def test_graphs_are_read_with_both_passes(graphs):
    assert [graph.name for graph in graphs][:2] == ["g00", "g01"] and len(graphs) == 16
    assert {graph.feature_set for graph in graphs} == {"loops-1"}
    assert graphs[0].noise_ceiling == 1
    names = [name for fold in held_out_folds(graphs, 4) for name in fold]
    assert sorted(names) == [graph.name for graph in graphs]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"config_runtime": np.zeros(24, np.int64)}, "a value that is not positive"),
        ({"node_features": np.full((3, 2), np.nan, np.float32)}, "a feature is not finite"),
        ({"edge_index": np.array([[3, 0]])}, "names nodes that do not exist; there are 3"),
        ({"config_features": np.zeros((24, 2, 2), np.float32)}, r"expected \[24, 3, columns\]"),
        ({"feature_set": np.frombuffer(b"other", np.uint8)}, "must agree"),
    ],
)
def test_a_wrong_file_is_named_with_what_is_wrong(tmp_path, changed, words):
    write_feature_graph(tmp_path, 0)
    write_feature_graph(tmp_path, 4, **changed)
    with pytest.raises(ValueError, match=f"g04.*{words}"):
        read_feature_graphs(tmp_path)


def test_a_folder_without_graphs_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="has no measured graphs"):
        read_feature_graphs(tmp_path)
    np.savez(tmp_path / "other.npz", numbers=np.zeros(3))
    with pytest.raises(ValueError, match=r"other.npz' is not a measured graph"):
        read_feature_graphs(tmp_path)


def test_a_configuration_has_the_same_score_beside_larger_graphs(graphs):
    torch.manual_seed(0)
    model = FeatureSetModel(FeatureSetSettings(2, 2, 8, 8)).eval()
    model.fit(graphs)
    alone, beside = make_batch(graphs[:1]), make_batch(graphs[:4])
    with torch.no_grad():
        first, *_ = model(beside).split(beside.counts)
        assert torch.allclose(model(alone), first, atol=1e-5)


def test_edges_matter_with_convolutions_only(graphs):
    torch.manual_seed(0)
    cut = replace(graphs[3], edges=graphs[3].edges[:0])
    for convolutions in (0, 2):
        model = FeatureSetModel(FeatureSetSettings(2, 2, 8, 8, convolutions=convolutions))
        model.fit(graphs)
        # Untrained, all nodes have the same costs.
        torch.nn.init.normal_(model.costs.weight)
        differ = not np.allclose(model.scores(graphs[3]), model.scores(cut))
        assert differ == (convolutions > 0)


@pytest.mark.parametrize("order", [False, True])
def test_the_loss_is_smaller_for_the_right_order(order):
    settings = FeatureSetSettings(2, 2, order=order)
    times = torch.tensor([1e6, 2e6, 4e6])
    right = torch.log(times / 1e6)
    assert loss_of(settings, right, times) < loss_of(settings, right.flip(0), times)


def error(graphs, settings, training):
    """The mean relative error on the last four graphs after a training on the others."""
    model = train_feature_set(graphs[:12], settings, training)
    errors = [model.scores(graph) * 1e6 / graph.nanoseconds - 1 for graph in graphs[12:]]
    return np.mean([np.abs(each).mean() for each in errors])


def test_a_model_learns_run_times_of_unseen_graphs(graphs):
    settings = FeatureSetSettings(2, 2, 16, 16)
    training = FeatureSetTraining(epochs=60, learning_rate=5e-3, averaging=0.9)
    assert error(graphs, settings, training) < 0.25


COLUMNS = {"name": "loops-1", "node_features": ["odd", "even"], "config_features": ["n", "root"]}


@pytest.fixture
def trained(tmp_path, monkeypatch):
    """Trains on a folder's graphs by the command line; returns the manifest."""

    def train(folder, *options):
        files = ("--data", folder, "--out", tmp_path / "out", "--name", "trained")
        arguments = ("training", "train", "feature-set", *files, *options)
        monkeypatch.setattr("sys.argv", list(map(str, arguments)))
        main()
        return read_json(tmp_path / "out/trained/1/manifest.json")

    return train


def test_an_exported_model_scores_as_the_trained_one(tmp_path, graphs):
    torch.manual_seed(0)
    model = FeatureSetModel(FeatureSetSettings(2, 2, 8, 8))
    model.fit(graphs)
    _write_onnx(model.eval(), tmp_path / "model.onnx")
    served = session(tmp_path / "model.onnx")
    for graph in graphs[:4]:
        (scores,) = served.run(None, _arrays(graph))
        assert scores == pytest.approx(model.scores(graph) * 1e-3, rel=1e-4)


def test_a_trained_model_becomes_an_artifact(tmp_path, folder, trained, capsys):
    write_json(folder / "feature_set.json", COLUMNS)
    manifest = trained(folder, "--epochs", 4, "--members", 2)
    assert "kendall_tau" in capsys.readouterr().out
    expected = {
        "task": "feature-set",
        "kind": "graph",
        "chunk_configs": 64,
        "unit": "seconds",
        "feature_set": COLUMNS,
        "feature_digest": "7fb368bacafd318d6ca30150597010107ac0e0e469dfb7abf45189725a2516ef",
    }
    assert expected.items() <= manifest.items()
    assert manifest["measured_quality"]["graphs"] == 4
    with np.load(tmp_path / "out/trained/1/golden.npz") as golden:
        assert golden["2/config_features"].shape[0] == len(golden["2/score"]) == 8
        assert golden["0/feature_set"].tobytes() == b"loops-1"


def test_a_model_of_the_order_alone_needs_no_columns_of_nodes(tmp_path, trained, capsys):
    random = np.random.default_rng(0)
    for number in range(12):
        # How large a program is, no column says.
        amounts = random.uniform(1, 100, (16, 1, 2)).astype(np.float32)
        times = random.uniform(1e3, 1e6) * amounts[:, 0] @ np.array([1.0, 3.0])
        write_feature_graph(
            tmp_path,
            number,
            node_features=np.zeros((1, 0), np.float32),
            edge_index=np.zeros((0, 2), np.int64),
            config_features=amounts,
            config_runtime=times.astype(np.int64),
        )
    write_json(tmp_path / "feature_set.json", COLUMNS | {"node_features": []})
    manifest = trained(tmp_path, "--epochs", 30, "--order")
    assert "median_error" not in capsys.readouterr().out
    assert "unit" not in manifest and manifest["prior"]["slope"] > 0
    assert manifest["measured_quality"]["kendall_tau"] > 0.9


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (None, "should have `name`, `node_features` and `config_features`"),
        ({"name": "loops-1"}, "should have `name`"),
        (COLUMNS | {"node_features": ["odd"]}, "but the graphs have"),
        (COLUMNS | {"products": [["n", "steps"]]}, "may have `products`"),
    ],
)
def test_columns_that_are_missing_or_others_are_told(tmp_path, trained, columns, words):
    for number in range(4):
        write_feature_graph(tmp_path, number)
    if columns is not None:
        write_json(tmp_path / "feature_set.json", columns)
    with pytest.raises(SystemExit, match=f"--data: .*{words}"):
        trained(tmp_path)


def test_an_ensemble_predicts_the_geometric_mean_of_its_members(graphs):
    ensemble = train_members(graphs[:4], ((0, 1),), epochs=2, members=2, order=False)
    assert ensemble.architecture == "singh-gcn-feature-set-ensemble-2"
    first, second = (member.scores(graphs[5]) for member in ensemble.members)
    assert not np.allclose(first, second)
    assert ensemble.scores(graphs[5]) == pytest.approx(np.sqrt(first * second), rel=1e-5)


def test_run_times_that_are_products_of_columns_are_learned_as_amounts(graphs):
    of_products = [
        replace(graph, nanoseconds=(10 * graph.config_features.prod(-1).sum(1)).astype(np.int64))
        for graph in graphs
    ]
    with_products, without = (
        FeatureSetSettings(2, 2, convolutions=0, products=products) for products in (((0, 1),), ())
    )
    training = FeatureSetTraining(epochs=20)
    assert error(of_products, with_products, training) < error(of_products, without, training)
