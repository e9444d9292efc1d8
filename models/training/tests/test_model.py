"""Segment models, of those that ship and of papers: their exported files, and their checkpoints."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
onnx = pytest.importorskip("onnx", reason="onnx is not installed")

from examples import untrained  # noqa: E402
from hlorank_training.models.checkpoint import load_checkpoint, save_checkpoint  # noqa: E402
from hlorank_training.models.graph_layers import Standardise  # noqa: E402
from hlorank_training.models.graphsage_transformer import (  # noqa: E402
    GraphSageTransformer,
    ModelSettings,
)
from hlorank_training.models.kernel_time import (  # noqa: E402
    KernelTimeModel,
    KernelTimeSettings,
)
from hlorank_training.models.segment_model import SegmentModel  # noqa: E402
from hlorank_training.registry import REGISTRY  # noqa: E402
from hlorank_training.shipping.onnx_model import OnnxModel, write_onnx  # noqa: E402

SHIPPED = {
    "layout": ModelSettings("layout"),
    "layout without attention": ModelSettings("layout", attention=False),
    "layout of other widths": ModelSettings("layout", hidden=96, joined=32),
    "tile": ModelSettings("tile"),
    "vectors": ModelSettings("tile", vectors=True),
    "loops": ModelSettings("tile", vectors=True, loops=True),
}
PAPERS = [
    name
    for name, entry in REGISTRY.of_task("tile").items()
    if "paper" in entry.presets and entry.model.kind == "segment"
]


@dataclass(frozen=True)
class Exported:
    """A model with random weights, and its files."""

    model: SegmentModel
    folder: Path
    onnx: OnnxModel

    def rows(self, nodes: int, count: int = 6, largest: float = 500) -> list[np.ndarray]:
        """The six inputs of the encoder: rows of three segments, the first with half its nodes.

        Features are up to ``largest``.
        """
        random = np.random.default_rng(0)
        features = largest ** random.random((3, nodes, 140)) * random.choice([-1, 0, 1], 140)
        features[..., 21:27] = random.integers(1, 500, (3, nodes, 6))
        mask = np.ones((3, nodes), np.float32)
        mask[0, (nodes + 1) // 2 :] = 0
        columns = 222 if getattr(self.model.settings, "loops", False) else 24
        layouts = random.integers(-2, 6, (count, nodes, 18))
        tiles = random.integers(0, 512, (count, columns)).astype(np.float32)
        return [
            random.integers(0, 120, (3, nodes)),
            features.astype(np.float32),
            np.tril(random.random((3, nodes, nodes)) < 0.4, -1).astype(np.float32),
            mask,
            np.arange(count) % 3,
            layouts if self.model.settings.task == "layout" else tiles,
        ]


@pytest.fixture(scope="module", params=[*SHIPPED, *PAPERS])
def exported(request, tmp_path_factory) -> Exported:
    torch.manual_seed(0)
    shipped = SHIPPED.get(request.param)
    model = GraphSageTransformer(shipped).eval() if shipped else untrained("tile", request.param)
    folder = tmp_path_factory.mktemp("exported")
    write_onnx(model, folder)
    return Exported(model, folder, OnnxModel(folder))


def of_rows(inputs: list[np.ndarray], chosen: list[int]) -> list[np.ndarray]:
    """The ``chosen`` rows, and the segments that they are of."""
    *static, segment, config = inputs
    used, number = np.unique(segment[chosen], return_inverse=True)
    return [*(part[used] for part in static), number, config[chosen]]


def padded(inputs: list[np.ndarray], more: int) -> list[np.ndarray]:
    """The same rows with ``more`` padded nodes that hold garbage."""
    opcode, features, operands, mask, segment, config = inputs
    node = (0, more)
    wide = np.pad(config, [(0, 0), node, (0, 0)], constant_values=3) if config.ndim == 3 else config
    return [
        np.pad(opcode, [(0, 0), node], constant_values=7),
        np.pad(features, [(0, 0), node, (0, 0)], constant_values=99),
        np.pad(operands, [(0, 0), node, node], constant_values=1),
        np.pad(mask, [(0, 0), node]),
        segment,
        wide,
    ]


@pytest.mark.parametrize("exported", ["layout", "tile"], indirect=True)
def test_the_embedding_depends_on_the_configuration_and_on_the_direction_of_edges(exported):
    opcode, features, operands, *rest, config = exported.rows(6)
    for edges, local in (
        (operands.swapaxes(1, 2).copy(), config),
        (operands, np.roll(config, 1, axis=0)),
    ):
        changed = exported.onnx.encode([opcode, features, edges, *rest, local])
        expected = exported.onnx.encode([opcode, features, operands, *rest, config])
        assert np.abs(changed - expected).max() > 1e-4


def test_onnx_runtime_agrees_with_torch_for_every_shape(exported):
    for nodes, count in ((1, 4), (4, 2), (8, 9), (32, 5)):
        inputs = exported.rows(nodes, count)
        with torch.no_grad():
            expected = exported.model.encoder(*map(torch.from_numpy, inputs))
            scores = exported.model.head(expected).numpy()
        expected = expected.numpy()
        assert np.abs(expected).max() > 0
        actual = exported.onnx.encode(inputs)
        assert np.abs(actual - expected).max() / np.abs(expected).max() < 1e-5
        assert exported.onnx.head(expected) == pytest.approx(scores, rel=1e-4, abs=1e-5)


def test_a_row_is_the_same_to_the_bit_among_any_others_and_with_any_padding(exported):
    encode = exported.onnx.encode
    of_all_segments = [[2, 0, 1], list(range(0, 60, 7))]
    of_fewer = [[0, 1], [1, 4], [1, 4, 7, 10], [59, 2, 2], list(range(0, 60, 3))]
    if exported.model.architecture == "tgraph-tile":
        of_fewer = []  # its bits depend on the number of segments
    for nodes, largest in ((4, 8.0), (8, 1e3), (24, 1e6), (40, 1e9)):
        inputs = exported.rows(nodes, 60, largest)
        expected = encode(inputs)
        for chosen in (*of_all_segments, *of_fewer):
            assert (encode(of_rows(inputs, chosen)) == expected[chosen]).all(), chosen
        for more in (8, 24):
            assert (encode(padded(inputs, more)) == expected).all()


@pytest.mark.parametrize("exported", SHIPPED, indirect=True)
def test_the_layers_of_the_graph_run_once_for_all_rows_of_a_segment(exported):
    segment, encoder = (
        onnx.load(exported.folder / f"{part}.onnx").graph for part in ("segment", "encoder")
    )
    weights = [
        sum(np.prod(tensor.dims) for tensor in graph.initializer) for graph in (segment, encoder)
    ]
    # Columns of loops differ from row to row, so their layers are the encoder's.
    assert exported.model.settings.loops or weights[0] > weights[1]
    operators = [node.op_type for node in encoder.node]
    assert "Attention" not in operators
    assert len(operators) < 105


@pytest.mark.parametrize(
    "model",
    [
        GraphSageTransformer(ModelSettings("layout")),
        GraphSageTransformer(ModelSettings("tile")),
        KernelTimeModel(KernelTimeSettings(hidden=16)),
    ],
    ids=lambda model: model.settings.task,
)
def test_a_checkpoint_gives_the_same_model_back(model, tmp_path):
    save_checkpoint(tmp_path / "run" / "checkpoint.pt", model)
    again = load_checkpoint(tmp_path / "run" / "checkpoint.pt", REGISTRY)
    assert type(again) is type(model) and again.settings == model.settings
    assert not again.training
    assert all(torch.equal(again.state_dict()[name], x) for name, x in model.state_dict().items())


def test_constant_columns_become_zero():
    standardise = Standardise(2)
    standardise.fit(torch.tensor([[1.0, 5.0], [9.0, 5.0]]))
    out = standardise(torch.tensor([[1.0, 5.0], [9.0, 1e6]]))
    assert out.tolist() == [[pytest.approx(-1), 0], [pytest.approx(1), 0]]
