"""Layers of the papers' tile models on examples computed by hand."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
onnx = pytest.importorskip("onnx", reason="onnx is not installed")

from copy import deepcopy  # noqa: E402
from dataclasses import replace  # noqa: E402
from pathlib import Path  # noqa: E402

import architecture_checks as checks  # noqa: E402
import numpy as np  # noqa: E402
from hlorank_tune.measure.schema import TuningData  # noqa: E402

from hlorank_research.papers.kaufman import Kaufman, KaufmanSettings  # noqa: E402
from hlorank_research.papers.kaufman_layers import (  # noqa: E402
    Mean,
    NeighbourBlock,
    directions,
)
from hlorank_research.papers.kernel_costs import KernelCosts  # noqa: E402
from hlorank_research.papers.losses import relative_error  # noqa: E402
from hlorank_research.papers.singh import SinghSettings, SinghTile  # noqa: E402
from hlorank_research.papers.tgraph_layers import (  # noqa: E402
    ChannelAttention,
    Doubled,
    instance_norm,
)
from hlorank_training.data.dataset import read_graph  # noqa: E402
from hlorank_training.data.featurize import featurize  # noqa: E402
from hlorank_training.models.schedule_network import (  # noqa: E402
    NodeNorm,
    ScheduleNetwork,
    averages,
)
from hlorank_training.models.segment_batch import SegmentBatch  # noqa: E402
from hlorank_training.shipping.onnx_model import OnnxModel, write_onnx  # noqa: E402

KERNELS = Path(__file__).parents[3] / "tests/data/measured/tile_kernels.pb"
B_CONSUMES_A = torch.tensor([[[0.0, 0.0], [1.0, 0.0]]])
EYE = torch.eye(2)


def set_weight(layer, weight) -> None:
    with torch.no_grad():
        layer.weight.copy_(weight)


def test_kaufmans_graphsage_joins_a_node_with_its_operands_and_users():
    block = NeighbourBlock(2, [Mean(2), Mean(2)])
    for part in block.around:
        set_weight(part.dense, EYE)
    set_weight(block.join, torch.cat([EYE, EYE, EYE], 1))
    with torch.no_grad():
        out = block(EYE.unsqueeze(0), directions(B_CONSUMES_A, 20, directed=True))
    assert out.flatten().tolist() == pytest.approx([0.70711] * 4, abs=1e-5)


def test_a_node_has_at_most_twenty_neighbours():
    edges = torch.zeros(1, 22, 22)
    edges[0, 1:, 0] = 1  # 21 users of node 0
    operands, users = directions(edges, 20, directed=True)
    assert users[0, 0].nonzero().flatten().tolist() == list(range(1, 21))
    assert operands.sum() == 21
    assert directions(edges, 100, directed=True)[1][0, 0].sum() == 21


def twice(given: checks.Example) -> checks.Example:
    """Two copies of a kernel that are not connected."""
    edges = np.concatenate([given.edges, given.edges + len(given.opcode)], 1)
    opcode, features = np.tile(given.opcode, 2), np.tile(given.features, (2, 1))
    return replace(given, opcode=opcode, features=features, edges=edges)


@pytest.mark.parametrize(
    "gnn, reduction, factor",
    [("sage", "per-node", 2), ("gat", "per-node", 2), ("sage", "column-wise", 1)],
)
def test_two_copies_of_a_kernel_have_twice_the_per_node_score(gnn, reduction, factor):
    settings = KaufmanSettings(gnn, reduction, hidden=16, costs="absent")
    model, given = checks.fitted(Kaufman, settings), checks.example()
    expected = factor * checks.scores(model, given)
    assert checks.difference(checks.scores(model, twice(given)), expected) < 1e-5


@pytest.mark.parametrize(
    "changes",
    [
        {"costs": "kernel"},
        {"costs": "absent"},
        {"tile": "kernel"},
        {"directed": False},
        {"module_norm": True},
        {"scale": "log-standard"},
    ],
    ids=str,
)
@pytest.mark.parametrize("reduction", ["per-node", "column-wise"])
def test_every_ablation_scores_configurations_and_ignores_padding(reduction, changes):
    settings = replace(KaufmanSettings("sage", reduction, hidden=16), **changes)
    model = checks.fitted(Kaufman, settings)
    checks.check_configurations(model, checks.example())
    checks.check_padding(model, checks.example())


def test_ablations_change_the_number_of_parameters_as_the_tables_imply():
    hidden = 16
    base = KaufmanSettings("sage", "per-node", hidden=hidden)
    vanilla = checks.parameters(Kaufman(base))
    undirected = checks.parameters(Kaufman(replace(base, directed=False)))
    appended = checks.parameters(Kaufman(replace(base, costs="kernel")))
    assert vanilla - undirected == 3 * (5 - 3) * hidden**2
    assert vanilla - appended == 4 * hidden - 4


def test_singhs_convolution_averages_a_node_and_its_neighbours():
    network = ScheduleNetwork((1, 0), SinghSettings(invariant=1, dependent=0)).eval()
    for block in network.blocks:
        set_weight(block.linear, torch.ones(1, 1))
        torch.nn.init.zeros_(block.linear.bias)
        block.norm.eps = 0.0
    set_weight(network.readout, torch.tensor([[1.0, 10.0, 100.0]]))
    stages, mask = torch.tensor([[[2.0], [4.0]]]), torch.ones(1, 2)
    with torch.no_grad():
        levels = network.levels(stages, B_CONSUMES_A, mask)
        score = network(stages, B_CONSUMES_A, mask)
    assert [level.flatten().tolist() for level in levels] == [[2, 4], [3, 3], [3, 3]]
    assert score.item() == 6 + 60 + 600
    assert averages(B_CONSUMES_A, directed=False).sum(-1).tolist() == [[1, 1]]


def test_singhs_published_inputs_have_the_published_number_of_parameters():
    network = ScheduleNetwork((320, 94), SinghSettings())
    assert checks.parameters(network) + 1 == 235_641


def test_singhs_run_times_of_disjoint_kernels_add_up():
    model, given = checks.fitted(SinghTile, SinghSettings()), checks.example()
    torch.nn.init.constant_(model.head.bias, 0.7)
    expected = 2 * checks.scores(model, given) - 0.7
    assert checks.difference(checks.scores(model, twice(given)), expected) < 1e-5


def test_singhs_normalization_in_training_ignores_padding():
    torch.manual_seed(0)
    norm = ScheduleNetwork((1, 0), SinghSettings(invariant=3, dependent=0)).blocks[0].norm.train()
    x, mask = torch.randn(2, 4, 3), torch.tensor([[1.0, 1, 1, 0], [1, 1, 0, 0]])
    out = norm(x, mask)
    garbage = norm(torch.where(mask.unsqueeze(-1) > 0, x, 1e3), mask)
    assert torch.equal(out, garbage)
    assert out[mask > 0].mean(0).abs().max() < 1e-6


def folded(model: SinghTile) -> SinghTile:
    """The model with its normalizations folded into the linear layers before them.

    Rows of the averages sum to 1, so a constant that is added before them is added after them.
    """
    copy = deepcopy(model)
    for block in copy.encoder.network.blocks:
        norm, linear = block.norm, block.linear
        scale = norm.weight * torch.rsqrt(norm.running_var + norm.eps)
        with torch.no_grad():
            linear.bias.copy_(scale * (linear.bias - norm.running_mean) + norm.bias)
            linear.weight.mul_(scale.unsqueeze(-1))
        block.norm = NodeNorm(len(scale), eps=0.0)
    return copy.eval()


def test_singhs_normalization_can_be_folded_into_the_weights(tmp_path):
    model = checks.fitted(SinghTile, SinghSettings(invariant=12, dependent=4))
    for block in model.encoder.network.blocks:
        for values in (block.norm.weight, block.norm.running_var):
            torch.nn.init.uniform_(values, 0.5, 2.0)
        for values in (block.norm.bias, block.norm.running_mean):
            torch.nn.init.normal_(values)
    given = checks.example()
    expected = checks.scores(model, given)
    assert checks.difference(checks.scores(folded(model), given), expected) < 1e-5
    write_onnx(model, tmp_path)
    exported, inputs = OnnxModel(tmp_path), [t.numpy() for t in checks.encoder_inputs(given)]
    actual = exported.head(exported.encode(inputs))
    assert checks.difference(actual, checks.scores(folded(model), given)) < 1e-5
    operators = {node.op_type for node in onnx.load(tmp_path / "encoder.onnx").graph.node}
    assert "BatchNormalization" not in operators


def test_ten_times_longer_run_times_have_the_same_relative_error():
    scores, runtimes = torch.tensor([3.0, 1.5]), torch.tensor([2_000_000, 1_000_000])
    expected = float(relative_error(scores, runtimes))
    assert float(relative_error(10 * scores, 10 * runtimes)) == pytest.approx(expected)


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
    features, edges = torch.zeros(1, len(nodes), 140), torch.zeros(1, len(nodes), len(nodes))
    for number, (_, shape, operands) in enumerate(nodes):
        features[0, number, 13] = 1  # f32
        features[0, number, 21 : 21 + len(shape)] = torch.tensor(shape).float()
        features[0, number, 28] = float(np.prod(shape))
        edges[0, number, list(operands)] = 1
    features[0, -1, 0] = 1
    opcode = torch.tensor([[opcode for opcode, _, _ in nodes]])
    none = torch.zeros(0)
    return SegmentBatch(opcode, features, edges, torch.ones(opcode.shape), none, none)


def costs(*nodes) -> list[float]:
    return KernelCosts()(kernel(*nodes))[0].tolist()


def test_a_dot_costs_two_operations_for_each_product():
    operands = [(PARAMETER, (2, 3, 5), ()), (PARAMETER, (2, 5, 7), ())]
    found = costs(*operands, (DOT, (2, 3, 7), (0, 1)))
    assert found == pytest.approx([2 * 2 * 3 * 7 * 5, 4 * (30 + 70), 4 * 42, 0], rel=1e-5)


def test_a_convolution_costs_its_kernel_for_each_output():
    given = kernel(
        (PARAMETER, (1, 8, 8, 3), ()),
        (PARAMETER, (3, 3, 3, 4), ()),
        (CONVOLUTION, (1, 6, 6, 4), (0, 1)),
    )
    given.features[0, 2, 106] = 3  # the output features are the last dimension
    found = KernelCosts()(given)[0].tolist()
    assert found == pytest.approx([2 * 144 * 27, 4 * (192 + 108), 4 * 144, 0], rel=1e-5)


def test_a_reduction_and_an_exponential_cost_their_elements():
    reduced = costs((PARAMETER, (6, 4), ()), (EXPONENTIAL, (6, 4), (0,)), (REDUCE, (6,), (1,)))
    assert reduced == pytest.approx([24 - 6, 4 * 24, 4 * 6, 24])


def test_only_the_parameters_of_a_fusion_are_read():
    inside = [(PARAMETER, (8,), ()), (EXPONENTIAL, (8,), (0,))]
    assert costs(*inside, (PARAMETER, (8,), ()), (FUSION, (8,), (2,)))[1] == 4 * 8


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
