import json
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
onnx = pytest.importorskip("onnx", reason="onnx is not installed")

from hlorank_training.fixtures.whole_graphs import (  # noqa: E402
    FIXTURES,
    EarlyJoin,
    MeanOfModels,
)
from hlorank_training.whole_graphs.graph import model_inputs  # noqa: E402
from hlorank_training.whole_graphs.model import CrossConfigurationAttention  # noqa: E402
from hlorank_training.whole_graphs.onnx_model import (  # noqa: E402
    OnnxWholeGraphModel,
    inputs,
    write_whole_graph_onnx,
)
from hlorank_training.whole_graphs.serving_rule import ServingRule  # noqa: E402

REGISTRY = Path(__file__).parents[3] / "tests/data/registry"
SHAPES = ((5, 6, 3, 4), (1, 0, 1, 2), (70, 90, 20, 7), (9, 12, 4, 1))
"""Nodes, edges, configurable nodes, configurations."""

each_fixture = pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: fixture.name)


def graph(task: str, nodes: int, edges: int, slots: int, configs: int, seed: int = 0):
    """Inputs of ``model.onnx`` by name."""
    random = np.random.default_rng(seed)
    arrays = {
        "opcode": random.integers(0, 120, nodes),
        "features": random.integers(0, 500, (nodes, 140)).astype(np.float32),
        "edges": random.integers(0, nodes, (2, edges)),
    }
    if task == "tile":
        return arrays | {"config": random.integers(0, 512, (configs, 24)).astype(np.float32)}
    chosen = random.choice(nodes, slots, replace=False)
    return arrays | {"configurable": chosen, "config": random.integers(-1, 6, (configs, slots, 18))}


def score(model: EarlyJoin, arrays: dict[str, np.ndarray]) -> np.ndarray:
    opcode, features, edges, *configuration = map(torch.from_numpy, arrays.values())
    with torch.no_grad():
        return model(opcode, features, edges, tuple(configuration)).numpy()


def model_of(fixture) -> EarlyJoin | MeanOfModels:
    members = []
    for seed in fixture.seeds:
        torch.manual_seed(seed)
        members.append(EarlyJoin(fixture.settings).eval())
    return members[0] if len(members) == 1 else MeanOfModels(members).eval()


@each_fixture
def test_onnx_runtime_agrees_with_torch_for_every_shape(fixture, tmp_path):
    model = model_of(fixture)
    write_whole_graph_onnx(model, tmp_path / "model.onnx")
    exported = OnnxWholeGraphModel(tmp_path / "model.onnx", ServingRule(100))
    for shape in SHAPES:
        arrays = graph(fixture.settings.task, *shape)
        assert tuple(arrays) == inputs(fixture.settings.task)
        expected = score(model, arrays)
        config = arrays.pop("config")
        actual = exported.score(arrays, config)
        assert actual.shape == (shape[-1],)
        assert actual == pytest.approx(expected, rel=1e-4, abs=1e-4)


@each_fixture
def test_only_attention_across_configurations_makes_scores_depend_on_the_chunk(fixture):
    model = model_of(fixture)
    arrays = graph(fixture.settings.task, 20, 30, 6, 8)
    together = score(model, arrays)[:3]
    apart = score(model, arrays | {"config": arrays["config"][:3]})
    alike = np.abs(together - apart).max() < 1e-3
    assert alike != fixture.settings.cross_configuration


@each_fixture
def test_the_score_depends_on_the_configuration_and_on_the_direction_of_edges(fixture):
    model = model_of(fixture)
    arrays = graph(fixture.settings.task, 20, 30, 6, 4)
    expected = score(model, arrays)
    turned = score(model, arrays | {"edges": arrays["edges"][::-1].copy()})
    assert np.abs(turned - expected).max() > 1e-3
    assert len(np.unique(expected)) == 4


@pytest.mark.parametrize("fixture", FIXTURES[:2], ids=lambda fixture: fixture.name)
def test_slots_may_come_in_any_order(fixture):
    model = model_of(fixture)
    arrays = graph("layout", 20, 30, 6, 4)
    order = np.array([3, 1, 5, 0, 2, 4])
    moved = arrays | {
        "configurable": arrays["configurable"][order],
        "config": arrays["config"][:, order],
    }
    assert score(model, moved) == pytest.approx(score(model, arrays), rel=1e-5)


def test_attention_is_the_softmax_over_configurations_times_the_channel():
    attention = CrossConfigurationAttention()
    x = torch.tensor([[[1.0, -2.0]], [[3.0, -2.0]]])
    with torch.no_grad():
        out = attention(x)
    assert (out[..., :2] == x).all()
    weight = 1 / (1 + np.exp(-(3 - 1) / 0.5))
    expected = [1 * (1 - weight), -1, 3 * weight, -1]
    assert out[..., 2:].flatten().tolist() == pytest.approx(expected, rel=1e-5)


def test_an_ensemble_scores_the_mean_of_its_members():
    fixture = next(fixture for fixture in FIXTURES if len(fixture.seeds) == 2)
    ensemble, arrays = model_of(fixture), graph("layout", 20, 30, 6, 4)
    members = [score(member, arrays) for member in ensemble.members]
    assert np.abs(members[0] - members[1]).max() > 1e-3
    assert score(ensemble, arrays) == pytest.approx(np.mean(members, 0), rel=1e-6)


@each_fixture
def test_a_fixture_is_small_and_says_what_it_is(fixture):
    folder = REGISTRY / fixture.name / "1"
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert sum(path.stat().st_size for path in folder.iterdir()) < 65_000
    assert manifest["kind"] == "graph"
    assert manifest["chunk_configs"] == fixture.rule.chunk_configs
    assert manifest["batch_dependent"] == fixture.settings.cross_configuration
    assert manifest["measured_quality"] == {}, "nothing was measured of random weights"
    assert manifest["training_data_digest"] == sha256().hexdigest(), "no data trained it"
    for name, digest in manifest["files"].items():
        assert sha256((folder / name).read_bytes()).hexdigest() == digest


@each_fixture
def test_a_fixture_has_the_inputs_and_outputs_of_the_contract(fixture):
    model = onnx.load(REGISTRY / fixture.name / "1" / "model.onnx", load_external_data=False)
    onnx.checker.check_model(model)
    layout = fixture.settings.task == "layout"
    expected = {"opcode": ("INT64", 1), "features": ("FLOAT", 2), "edges": ("INT64", 2)}
    expected |= {"configurable": ("INT64", 1)} if layout else {}
    expected |= {"config": ("INT64", 3) if layout else ("FLOAT", 2)}
    assert {value.name: kind(value) for value in model.graph.input} == expected
    assert {value.name: kind(value) for value in model.graph.output} == {"score": ("FLOAT", 1)}
    assert b".py" not in model.SerializeToString()


def kind(value) -> tuple[str, int]:
    tensor = value.type.tensor_type
    return onnx.TensorProto.DataType.Name(tensor.elem_type), len(tensor.shape.dim)


@each_fixture
def test_the_golden_scores_of_a_fixture_come_back(fixture):
    folder = REGISTRY / fixture.name / "1"
    rule = fixture.rule
    model = OnnxWholeGraphModel(folder / "model.onnx", rule)
    with np.load(folder / "golden.npz") as arrays:
        for case in {key.split("/")[0] for key in arrays.files}:
            golden = {key: arrays[key] for key in arrays.files if key.startswith(f"{case}/")}
            golden = {key.split("/")[1]: value for key, value in golden.items()}
            expected = golden.pop("score")
            assert len(expected) > 2 * rule.chunk_configs, "there are several chunks"
            assert len(expected) % rule.chunk_configs, "they are not all full"
            assert len(np.unique(expected)) > 1
            graph, config = model_inputs(golden)
            assert model.score(graph, config) == pytest.approx(expected, rel=1e-5)
