"""Every architecture of the papers for layouts passes the checks that all architectures get."""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("onnx", reason="onnx is not installed")

import architecture_checks as checks  # noqa: E402

from hlorank_training.data.dataset import distinct  # noqa: E402
from hlorank_training.data.featurize import featurize  # noqa: E402
from hlorank_training.papers.tpugraphs_gst import block, block_size  # noqa: E402
from hlorank_training.registry import REGISTRY  # noqa: E402
from hlorank_training.whole_graphs.graph import WholeGraph  # noqa: E402
from hlorank_training.whole_graphs.model import (  # noqa: E402
    CrossConfigurationAttention,
    mean_over,
)
from hlorank_training.whole_graphs.onnx_model import (  # noqa: E402
    OnnxWholeGraphModel,
    write_whole_graph_onnx,
)

CEILING = 0.92
"""Tau between two measuring passes of the graph of ``measured``."""


@dataclass(frozen=True)
class Facts:
    """What a paper or its code says about an architecture."""

    count: int
    """Trained parameters of preset ``paper``, with ``opcodes`` rows of the opcode table."""
    opcodes: int


FACTS = {
    # Blocks follow the numbers of nodes, but graphs of up to 999 nodes are one block.
    "tpugraphs-gst-sage": Facts(546_197, opcodes=128),
    "tgraph-layout-cross": Facts(215_013, opcodes=120),
    "tgraph-layout": Facts(460_577, opcodes=120),
}
LAYOUTS = REGISTRY.of_task("layout")
CROSS = "tgraph-layout-cross"
each = pytest.mark.parametrize("name", FACTS)


def small(name: str, **settings) -> torch.nn.Module:
    return checks.small(LAYOUTS[name], **settings)


def test_every_architecture_of_a_paper_is_checked():
    checks.check_every_architecture_is_listed(LAYOUTS, FACTS)


@each
def test_the_published_sizes_have_the_published_number_of_parameters(name):
    checks.check_count(LAYOUTS[name], FACTS[name].count, FACTS[name].opcodes)


@each
def test_scores_do_not_depend_on_the_numbers_of_nodes(name):
    checks.check_relabelling(small(name), checks.example("layout", 20))


def test_the_cut_into_blocks_depends_on_the_numbers_of_nodes():
    model = small("tpugraphs-gst-sage", nodes=16)
    checks.check_relabelling(model, checks.example("layout", 30), matters=True)
    checks.check_relabelling(model, checks.example("layout", 15))


def node_vectors(model: torch.nn.Module, given: checks.Example) -> np.ndarray:
    tensors = model.tensors(checks.graph_inputs(given), given.config)
    with torch.no_grad():
        return model.nodes(len(given.opcode), *tensors).numpy()


def test_a_node_sees_as_many_hops_as_there_are_layers():
    vectors = partial(node_vectors, small("tpugraphs-gst-sage"))
    checks.check_receptive_field(vectors, 3, "layout")


@each
def test_only_attention_across_configurations_makes_scores_depend_on_others(name):
    checks.check_configurations(small(name), checks.example("layout", 20), name == CROSS)


@each
def test_degenerate_graphs_have_finite_scores(name):
    checks.check_degenerate_graphs(small(name), "layout")


@each
def test_onnx_runtime_agrees_with_torch(name, tmp_path):
    checks.check_onnx_of_whole_graph_model(small(name), tmp_path / "model.onnx")


def test_cross_configuration_attention_by_hand():
    attention = CrossConfigurationAttention()
    with torch.no_grad():
        of_two = attention(torch.tensor([[[1.0]], [[0.0]]]))[..., 1].flatten().tolist()
        x = torch.randn(1, 4, 3)
        of_one = attention(x)
        attention.temperature.fill_(1e9)
        cold = attention(torch.tensor([[[1.0]], [[3.0]]]))[..., 1].flatten().tolist()
    assert of_two == pytest.approx([0.88080, 0], abs=1e-5)
    assert torch.equal(of_one, torch.cat([x, x], -1))
    assert cold == pytest.approx([0.5, 1.5])


def test_a_mean_over_users_ignores_nodes_without_any():
    h = torch.tensor([[[1.0], [2.0], [6.0]]])
    producers, consumers = torch.tensor([0, 0]), torch.tensor([1, 2])
    assert mean_over(h, producers, consumers).flatten().tolist() == [4, 0, 0]


def test_chunks_and_orders_of_tgraph_are_those_of_its_authors():
    rule = small(CROSS).rule
    assert [len(chunk) for chunk in rule.chunks(300)] == [100] * 30
    assert [len(chunk) for chunk in rule.chunks(128)] == [128]


def test_the_pad_value_is_that_of_tgraphs_features():
    entry = LAYOUTS[CROSS]
    assert entry.model.form(entry.presets["small"].model).pad_value == -1


@pytest.mark.parametrize(
    ("nodes", "sizes"), [(372, [372]), (1000, [501, 499]), (2500, [834, 834, 832])]
)
def test_blocks_are_as_equal_as_in_the_code(nodes, sizes):
    size = block_size(nodes, 1000)
    starts = range(0, nodes, size)
    assert [min(size, nodes - start) for start in starts] == sizes


def test_scores_of_blocks_without_edges_between_them_add_up():
    model = small("tpugraphs-gst-sage", nodes=16)
    given = checks.example("layout", 30)
    size = block_size(30, 16)
    within = given.edges[0] // size == given.edges[1] // size
    assert not within.all(), "edges between blocks are dropped"
    cut = replace(given, edges=given.edges[:, within])
    expected = checks.scores(model, given)
    assert checks.difference(checks.scores(model, cut), expected) < checks.CLOSE
    total, whole = 0, small("tpugraphs-gst-sage")
    for number in (0, 1):
        inputs, config = block(checks.graph_inputs(given), given.config, size, number)
        part = checks.Example(**inputs, config=config)
        total = total + checks.scores(whole, part)
    assert checks.difference(total, expected) < checks.CLOSE


def test_a_step_of_segment_training_computes_gradients_of_one_block():
    model = small("tpugraphs-gst-sage", nodes=16, keep=1.0, dropout=0.0).train()
    graph = checks.as_whole_graph(checks.example("layout", 30))
    chosen = np.arange(len(graph.runtimes))
    torch.manual_seed(0)
    for _ in range(12):
        scores = model.training_scores(graph, chosen).detach().numpy()
    expected = checks.scores(model, checks.example("layout", 30))
    # The trained block stands for the average of both, and the other one has its last score.
    table = model.last_scores["example"].numpy()
    assert checks.difference(table.sum(0), expected) < checks.CLOSE
    candidates = [2 * table[number] + table[1 - number] for number in (0, 1)]
    assert min(checks.difference(scores, c) for c in candidates) < checks.CLOSE


def test_one_block_is_trained_as_the_whole_graph():
    model = small("tpugraphs-gst-sage", dropout=0.0).train()
    given = checks.example("layout", 30)
    graph = checks.as_whole_graph(given)
    scores = model.training_scores(graph, np.arange(6)).detach().numpy()
    assert checks.difference(scores, checks.scores(model, given)) < checks.CLOSE


@pytest.fixture(scope="session")
def measured(hlorank, tmp_path_factory) -> Path:
    """A file of measured layouts."""
    return Path(__file__).parents[3] / "tests/data/measured/layout_random_window_nchw_train.pb"


@each
def test_a_model_learns_the_order_of_one_measured_graph(name, hlorank, measured, tmp_path):
    entry, path = LAYOUTS[name], tmp_path / "graph.npz"
    form = entry.model.form(entry.presets["small"].model)
    featurize(hlorank, [(measured, None)], [path], form.pad_value)
    graph: WholeGraph = distinct(form.read(path, path.stem))
    checks.check_learning(entry.model, entry.presets["small"], graph, CEILING)


@each
def test_scores_of_an_exported_model_are_those_of_training(name, hlorank, measured, tmp_path):
    entry, path = LAYOUTS[name], tmp_path / "graph.npz"
    form = entry.model.form(entry.presets["small"].model)
    featurize(hlorank, [(measured, None)], [path], form.pad_value)
    graph = form.read(path, path.stem)
    model = entry.model.for_graphs(entry.presets["small"].model, [graph]).eval()
    write_whole_graph_onnx(model, tmp_path / "model.onnx")
    chosen = np.arange(len(graph.runtimes))
    actual = OnnxWholeGraphModel(tmp_path / "model.onnx", model.rule).score_file(path, chosen)
    expected = model.scores([graph], [chosen]).numpy()
    assert checks.difference(actual, expected) < checks.CLOSE
