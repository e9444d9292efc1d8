"""Layers of the papers' tile models on examples computed by hand."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
onnx = pytest.importorskip("onnx", reason="onnx is not installed")

from pathlib import Path  # noqa: E402

from hlorank_tune.measure.schema import TuningData  # noqa: E402

from examples import node_features  # noqa: E402
from hlorank_training.data.dataset import read_graph  # noqa: E402
from hlorank_training.data.featurize import featurize  # noqa: E402
from hlorank_training.models.feature_set_model import ScheduleNetwork  # noqa: E402
from hlorank_training.models.segment_model import SegmentBatch  # noqa: E402
from hlorank_training.papers.kaufman import NeighbourBlock, directions  # noqa: E402
from hlorank_training.papers.kernel_costs import KernelCosts  # noqa: E402
from hlorank_training.papers.tgraph_layers import (  # noqa: E402
    ChannelAttention,
    Doubled,
    instance_norm,
)

KERNELS = Path(__file__).parents[3] / "tests/data/measured/tile_kernels.pb"
B_CONSUMES_A = torch.tensor([[[0.0, 0.0], [1.0, 0.0]]])
EYE = torch.eye(2)


def set_weight(layer, weight) -> None:
    with torch.no_grad():
        layer.weight.copy_(weight)


def test_kaufmans_graphsage_joins_a_node_with_its_operands_and_users():
    block = NeighbourBlock(2)
    for dense in block.around:
        set_weight(dense, EYE)
    set_weight(block.join, torch.cat([EYE, EYE, EYE], 1))
    with torch.no_grad():
        out = block(EYE.unsqueeze(0), directions(B_CONSUMES_A, 20))
    assert out.flatten().tolist() == pytest.approx([0.70711] * 4, abs=1e-5)


def test_singhs_convolution_averages_a_node_and_its_neighbours():
    network = ScheduleNetwork((1, 0), (1, 0), blocks=2).eval()
    for block in network.blocks:
        set_weight(block.linear, torch.ones(1, 1))
        torch.nn.init.zeros_(block.linear.bias)
        block.norm.eps = 0.0
    stages, mask = torch.tensor([[[2.0], [4.0]]]), torch.ones(1, 2)
    with torch.no_grad():
        levels = network(stages, B_CONSUMES_A, mask)
    assert [level.flatten().tolist() for level in levels] == [[2, 4], [3, 3], [3, 3]]


def test_singhs_normalization_in_training_ignores_padding():
    torch.manual_seed(0)
    norm = ScheduleNetwork((1, 0), (3, 0), blocks=1).blocks[0].norm.train()
    x, mask = torch.randn(2, 4, 3), torch.tensor([[1.0, 1, 1, 0], [1, 1, 0, 0]])
    out = norm(x, mask)
    garbage = norm(torch.where(mask.unsqueeze(-1) > 0, x, 1e3), mask)
    assert torch.equal(out, garbage)
    assert out[mask > 0].mean(0).abs().max() < 1e-6


def test_tgraphs_norm_is_over_the_real_nodes_of_a_kernel():
    x = torch.tensor([[[1.0], [3.0], [99.0]]])
    out = instance_norm(x, torch.tensor([[1.0, 1.0, 0.0]])).flatten().tolist()
    assert out == pytest.approx([-0.999995, 0.999995, 0], abs=1e-6)
    assert instance_norm(x, torch.tensor([[1.0, 0.0, 0.0]])).flatten().tolist() == [0, 0, 0]


def test_tgraphs_attentions_of_one_configuration():
    x = torch.randn(2, 5, 16)
    with torch.no_grad():
        share = ChannelAttention(16)(x) / x
        assert ((share > 0) & (share < 1)).all()
        assert torch.equal(Doubled()(x), torch.cat([x, x], -1))


DOT, CONVOLUTION, REDUCE, EXPONENTIAL, PARAMETER, FUSION = 34, 26, 70, 37, 63, 41


def kernel(*nodes: tuple[int, tuple[int, ...], tuple[int, ...]]) -> SegmentBatch:
    """A kernel of f32 nodes (opcode, shape, operands); its last node is the root."""
    opcodes, shapes, operands = zip(*nodes, strict=True)
    features = torch.from_numpy(node_features(shapes)).unsqueeze(0)
    edges = torch.zeros(1, len(nodes), len(nodes))
    for number, those in enumerate(operands):
        edges[0, number, list(those)] = 1
    # The output features of a convolution are the last dimension.
    features[0, torch.tensor(opcodes) == CONVOLUTION, 106] = 3
    opcode = torch.tensor([opcodes])
    none = torch.zeros(0)
    return SegmentBatch(opcode, features, edges, torch.ones(opcode.shape), none, none)


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param(
            [
                (PARAMETER, (2, 3, 5), ()),
                (PARAMETER, (2, 5, 7), ()),
                (DOT, (2, 3, 7), (0, 1)),
            ],
            [2 * 2 * 3 * 7 * 5, 4 * (30 + 70), 4 * 42, 0],
            id="two operations for each product of a dot",
        ),
        pytest.param(
            [
                (PARAMETER, (1, 8, 8, 3), ()),
                (PARAMETER, (3, 3, 3, 4), ()),
                (CONVOLUTION, (1, 6, 6, 4), (0, 1)),
            ],
            [2 * 144 * 27, 4 * (192 + 108), 4 * 144, 0],
            id="a convolution's kernel for each output",
        ),
        pytest.param(
            [
                (PARAMETER, (6, 4), ()),
                (EXPONENTIAL, (6, 4), (0,)),
                (REDUCE, (6,), (1,)),
            ],
            [24 - 6, 4 * 24, 4 * 6, 24],
            id="elements of a reduction and of an exponential",
        ),
        pytest.param(
            [
                (PARAMETER, (8,), ()),
                (EXPONENTIAL, (8,), (0,)),
                (PARAMETER, (8,), ()),
                (FUSION, (8,), (2,)),
            ],
            [0, 4 * 8, 4 * 8, 8],
            id="reads of the parameters of a fusion alone",
        ),
    ],
)
def test_a_kernel_costs_what_its_nodes_compute_read_and_write(nodes, expected):
    assert KernelCosts()(kernel(*nodes))[0].tolist() == pytest.approx(expected, rel=1e-5)


def test_operations_are_those_of_xlas_cost_analysis(hlorank, tmp_path):
    jax = pytest.importorskip("jax", reason="jax is not installed")
    from jaxlib import _hlo, _jax

    modules = TuningData.FromString(KERNELS.read_bytes()).modules
    paths = [tmp_path / f"{number}.npz" for number in range(len(modules))]
    featurize(hlorank, [(KERNELS, number) for number in range(len(modules))], paths)
    for module, path in zip(modules, paths, strict=True):
        parsed = _hlo.HloModule.from_serialized_hlo_module_proto(module.module.SerializeToString())
        expected = _jax.hlo_module_cost_analysis(jax.devices()[0].client, parsed)
        segment = read_graph(path, path.stem).segments[0]
        operations, _, _, transcendental = KernelCosts().of_segment(segment)[0].tolist()
        assert operations == pytest.approx(expected["flops"], rel=0.01)
        assert transcendental == pytest.approx(expected.get("transcendentals", 0), rel=0.01)
