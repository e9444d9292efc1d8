import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
onnx = pytest.importorskip("onnx", reason="onnx is not installed")

from examples import encoder_inputs, padded  # noqa: E402
from hlorank_training.models.checkpoint import load_checkpoint, save_checkpoint  # noqa: E402
from hlorank_training.models.graph_layers import Standardise  # noqa: E402
from hlorank_training.models.graphsage_transformer import (  # noqa: E402
    Encoder,
    GraphSageTransformer,
    ModelSettings,
)
from hlorank_training.registry import REGISTRY  # noqa: E402
from hlorank_training.shipping.onnx_model import OnnxModel, write_onnx  # noqa: E402

TASKS = ("layout", "tile")
EXPORTED = [
    ModelSettings("layout"),
    ModelSettings("tile"),
    ModelSettings("tile", vectors=True),
    ModelSettings("tile", vectors=True, loops=True),
    ModelSettings("layout", attention=False),
]
VARIANTS = [*EXPORTED, ModelSettings("layout", hidden=96, joined=32)]


def rows(settings: ModelSettings, *how: int, **more: float) -> list[np.ndarray]:
    width = 18 if settings.task == "layout" else 222 if settings.loops else 24
    return encoder_inputs(width, *how, **more)


def of_rows(inputs: list[np.ndarray], chosen: list[int]) -> list[np.ndarray]:
    """The ``chosen`` rows, and the segments that they are of."""
    *static, segment, config = inputs
    used, number = np.unique(segment[chosen], return_inverse=True)
    return [*(part[used] for part in static), number, config[chosen]]


def embed(encoder: Encoder, inputs: list[np.ndarray]) -> np.ndarray:
    with torch.no_grad():
        return encoder(*map(torch.from_numpy, inputs)).numpy()


@pytest.mark.parametrize("settings", VARIANTS, ids=str)
def test_padded_nodes_influence_nothing_even_if_they_hold_garbage(settings):
    encoder = GraphSageTransformer(settings).eval().encoder
    inputs = rows(settings, 6)
    expected = embed(encoder, inputs)
    assert np.abs(expected).max() > 0
    scale = np.abs(expected).max()
    assert np.abs(embed(encoder, padded(inputs, 10)) - expected).max() / scale < 1e-5


@pytest.mark.parametrize("task", TASKS)
def test_the_embedding_depends_on_the_configuration_and_on_the_direction_of_edges(task):
    encoder = GraphSageTransformer(ModelSettings(task)).eval().encoder
    inputs = rows(ModelSettings(task), 6)
    expected = embed(encoder, inputs)
    other = [*inputs[:5], rows(ModelSettings(task), 6, seed=1)[5]]
    turned = [*inputs[:2], inputs[2].swapaxes(1, 2).copy(), *inputs[3:]]
    assert np.abs(embed(encoder, other) - expected).max() > 1e-4
    assert np.abs(embed(encoder, turned) - expected).max() > 1e-4


@pytest.mark.parametrize("settings", EXPORTED, ids=str)
def test_onnx_runtime_agrees_with_torch_for_every_shape(settings, tmp_path):
    model = GraphSageTransformer(settings).eval()
    write_onnx(model, tmp_path)
    exported = OnnxModel(tmp_path)
    for nodes, count in ((4, 2), (8, 9), (32, 5)):
        inputs = rows(settings, nodes, count)
        expected = embed(model.encoder, inputs)
        actual = exported.encode(inputs)
        assert np.abs(actual - expected).max() / np.abs(expected).max() < 1e-5
        with torch.no_grad():
            scores = model.head(torch.from_numpy(expected)).numpy()
        assert exported.head(expected) == pytest.approx(scores, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("settings", EXPORTED, ids=str)
def test_an_exported_row_is_the_same_to_the_bit_among_any_others(settings, tmp_path):
    write_onnx(GraphSageTransformer(settings).eval(), tmp_path)
    encode = OnnxModel(tmp_path).encode
    for nodes, largest in ((4, 8.0), (8, 1e3), (24, 1e6), (40, 1e9)):
        inputs = rows(settings, nodes, 60, largest=largest)
        expected = encode(inputs)
        for chosen in ([0, 1], [1, 4], [1, 4, 7, 10], [59, 2, 2], list(range(0, 60, 3))):
            assert (encode(of_rows(inputs, chosen)) == expected[chosen]).all(), chosen
        for more in (8, 24):
            assert (encode(padded(inputs, more)) == expected).all()


@pytest.mark.parametrize("settings", EXPORTED, ids=str)
def test_the_layers_of_the_graph_run_once_for_all_rows_of_a_segment(settings, tmp_path):
    write_onnx(GraphSageTransformer(settings).eval(), tmp_path)
    weights = {
        part: sum(np.prod(t.dims) for t in onnx.load(tmp_path / f"{part}.onnx").graph.initializer)
        for part in ("segment", "encoder")
    }
    # Columns of loops differ from row to row, so their layers are the encoder's.
    assert settings.loops or weights["segment"] > weights["encoder"]
    operators = [node.op_type for node in onnx.load(tmp_path / "encoder.onnx").graph.node]
    assert "Attention" not in operators
    assert len(operators) < 105


@pytest.mark.parametrize("task", TASKS)
def test_a_checkpoint_gives_the_same_model_back(task, tmp_path):
    model = GraphSageTransformer(ModelSettings(task)).eval()
    save_checkpoint(tmp_path / "run" / "checkpoint.pt", model)
    again = load_checkpoint(tmp_path / "run" / "checkpoint.pt", REGISTRY)
    inputs = rows(ModelSettings(task), 6)
    assert (embed(again.encoder, inputs) == embed(model.encoder, inputs)).all()


def test_constant_columns_become_zero():
    standardise = Standardise(2)
    standardise.fit(torch.tensor([[1.0, 5.0], [9.0, 5.0]]))
    out = standardise(torch.tensor([[1.0, 5.0], [9.0, 1e6]]))
    assert out.tolist() == [[pytest.approx(-1), 0], [pytest.approx(1), 0]]
