"""Graphs of named features: read, learned from, and judged."""

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("sklearn", reason="scikit-learn is not installed")
pytest.importorskip("scipy", reason="scipy is not installed")

from hlorank_tune.measure.atomic_files import read_json, write_json  # noqa: E402

from examples import write_feature_graph  # noqa: E402
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


def test_a_model_learns_run_times_of_unseen_graphs(graphs):
    settings = FeatureSetSettings(2, 2, 16, 16)
    training = FeatureSetTraining(epochs=60, learning_rate=5e-3, averaging=0.9)
    model = train_feature_set(graphs[:12], settings, training)
    errors = [np.abs(model.scores(g) * 1e6 / g.nanoseconds - 1).mean() for g in graphs[12:]]
    assert np.mean(errors) < 0.25


TRAIN = ("train", "feature-set")
COLUMNS = {"name": "loops-1", "node_features": ["odd", "even"], "config_features": ["n", "root"]}


def run(monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", ["training", *map(str, arguments)])
    main()


def test_an_exported_model_scores_as_the_trained_one(tmp_path, graphs):
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    from hlorank_training.shipping.feature_set_artifact import _arrays, _write_onnx
    from hlorank_training.shipping.onnx_model import session

    torch.manual_seed(0)
    model = FeatureSetModel(FeatureSetSettings(2, 2, 8, 8))
    model.fit(graphs)
    _write_onnx(model.eval(), tmp_path / "model.onnx")
    served = session(tmp_path / "model.onnx")
    for graph in graphs[:4]:
        (scores,) = served.run(None, _arrays(graph))
        assert scores == pytest.approx(model.scores(graph) * 1e-3, rel=1e-4)


def test_a_trained_model_becomes_an_artifact(tmp_path, folder, monkeypatch, capsys):
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    write_json(folder / "feature_set.json", COLUMNS)
    common = ["--data", folder, "--out", tmp_path, "--name", "loops"]
    run(monkeypatch, *TRAIN, *common, "--epochs", 4, "--members", 2)
    assert "kendall_tau" in capsys.readouterr().out
    manifest = read_json(tmp_path / "loops/1/manifest.json")
    assert manifest["feature_set"] == COLUMNS and manifest["unit"] == "seconds"
    assert (manifest["task"], manifest["kind"], manifest["chunk_configs"]) == (
        "feature-set",
        "graph",
        64,
    )
    assert manifest["feature_digest"] == (
        "7fb368bacafd318d6ca30150597010107ac0e0e469dfb7abf45189725a2516ef"
    )
    assert manifest["measured_quality"]["graphs"] == 4
    with np.load(tmp_path / "loops/1/golden.npz") as golden:
        assert golden["2/config_features"].shape[0] == len(golden["2/score"]) == 8
        assert golden["0/feature_set"].tobytes() == b"loops-1"


def test_a_model_of_the_order_alone_needs_no_columns_of_nodes(tmp_path, monkeypatch, capsys):
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    random = np.random.default_rng(0)
    for number in range(12):
        # How large a program is, no column says.
        amounts = random.uniform(1, 100, (16, 1, 2)).astype(np.float32)
        times = random.uniform(1e3, 1e6) * amounts[:, 0] @ np.array([1.0, 3.0])
        np.savez(
            tmp_path / f"g{number}.npz",
            feature_set=np.frombuffer(b"flat-1", np.uint8),
            node_features=np.zeros((1, 0), np.float32),
            edge_index=np.zeros((0, 2), np.int64),
            config_features=amounts,
            config_runtime=times.astype(np.int64),
        )
    columns = {"name": "flat-1", "node_features": [], "config_features": ["a", "b"]}
    write_json(tmp_path / "feature_set.json", columns)
    common = ["--data", tmp_path, "--out", tmp_path / "out", "--name", "flat"]
    run(monkeypatch, *TRAIN, *common, "--epochs", 30, "--order")
    assert "median_error" not in capsys.readouterr().out
    manifest = read_json(tmp_path / "out/flat/1/manifest.json")
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
def test_columns_that_are_missing_or_others_are_told(tmp_path, monkeypatch, columns, words):
    for number in range(4):
        write_feature_graph(tmp_path, number)
    if columns is not None:
        write_json(tmp_path / "feature_set.json", columns)
    with pytest.raises(SystemExit, match=f"--data: .*{words}"):
        run(
            monkeypatch,
            *(*TRAIN, "--data", tmp_path, "--out", tmp_path, "--name", "loops"),
        )


def test_the_command_names_the_folder_that_is_wrong(tmp_path, monkeypatch):
    with pytest.raises(SystemExit, match=r"--data: .* has no measured graphs"):
        run(monkeypatch, *TRAIN, "--data", tmp_path, "--out", tmp_path, "--name", "loops")


def test_an_ensemble_predicts_the_geometric_mean_of_its_members(graphs):
    ensemble = train_members(graphs[:4], ((0, 1),), epochs=2, members=2, order=False)
    assert ensemble.architecture == "singh-gcn-feature-set-ensemble-2"
    first, second = (member.scores(graphs[5]) for member in ensemble.members)
    assert not np.allclose(first, second)
    assert ensemble.scores(graphs[5]) == pytest.approx(np.sqrt(first * second), rel=1e-5)


def test_run_times_that_are_products_of_columns_are_learned_as_amounts(tmp_path):
    for number in range(16):
        write_feature_graph(tmp_path, number)
    graphs = [
        replace(graph, nanoseconds=(10 * graph.config_features.prod(-1).sum(1)).astype(np.int64))
        for graph in read_feature_graphs(tmp_path)
    ]

    def error(products):
        settings = FeatureSetSettings(2, 2, convolutions=0, products=products)
        model = train_feature_set(graphs[:12], settings, FeatureSetTraining(epochs=20))
        return np.mean(
            [np.abs(model.scores(g) * 1e6 / g.nanoseconds - 1).mean() for g in graphs[12:]]
        )

    assert error(((0, 1),)) < error(())
