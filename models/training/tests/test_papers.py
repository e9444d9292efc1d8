"""Every architecture of the papers passes the checks that all architectures get."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("onnx", reason="onnx is not installed")

import architecture_checks as checks  # noqa: E402

from hlorank_training.data.dataset import Measured, distinct  # noqa: E402
from hlorank_training.data.featurize import featurize  # noqa: E402
from hlorank_training.models.architecture import Architecture  # noqa: E402
from hlorank_training.papers.tpugraphs_gst import block, block_size  # noqa: E402
from hlorank_training.registry import REGISTRY  # noqa: E402
from hlorank_training.whole_graphs.model import (  # noqa: E402
    CrossConfigurationAttention,
    mean_over,
)
from hlorank_training.whole_graphs.onnx_model import (  # noqa: E402
    OnnxWholeGraphModel,
    write_whole_graph_onnx,
)

MEASURED = Path(__file__).parents[3] / "tests/data/measured"
GRAPHS = {
    "layout": (MEASURED / "layout_random_window_nchw_train.pb", None, 0.92),
    "tile": (MEASURED / "tile_kernels.pb", 0, 0.93),
}
"""A measured graph of each task: its file, its module, and the tau between measuring passes."""


@dataclass(frozen=True)
class Facts:
    """What a paper or its code says about an architecture."""

    task: str
    count: int
    """Trained parameters of preset ``paper``, with ``opcodes`` rows of the opcode table."""
    opcodes: int
    layers: int = 0
    """Layers along edges, after which a node's vector depends on as many hops."""

    @property
    def example(self) -> checks.Example:
        """A random graph."""
        return checks.example(self.task, 20 if self.task == "layout" else 9)


FACTS = {
    # Blocks follow the numbers of nodes, but graphs of up to 999 nodes are one block.
    "tpugraphs-gst-sage": Facts("layout", 546_197, opcodes=128),
    "tgraph-layout-cross": Facts("layout", 215_013, opcodes=120),
    "tgraph-layout": Facts("layout", 460_577, opcodes=120),
    "tpugraphs-early-sage": Facts("tile", 61_889, opcodes=121, layers=3),
    "tgraph-tile": Facts("tile", 540_645, opcodes=120),
    "kaufman-sage-transformer": Facts("tile", 31_923_456 + 2 * 1024, opcodes=121, layers=3),
}
CROSS = "tgraph-layout-cross"
each = pytest.mark.parametrize(("name", "facts"), FACTS.items(), ids=FACTS)


def of(task: str) -> list[str]:
    return [name for name, facts in FACTS.items() if facts.task == task]


def entry(name: str) -> Architecture:
    return REGISTRY.find(FACTS[name].task, name)


def small(name: str, **settings) -> torch.nn.Module:
    return checks.small(entry(name), **settings)


def without_costs(name: str) -> dict[str, bool]:
    """The costs of a kernel, which Kaufman joins at every node, depend on all nodes and edges."""
    return {"costs": False} if name.startswith("kaufman") else {}


def test_every_architecture_of_a_paper_is_checked():
    of_papers = {one.name for one in REGISTRY.entries if "paper" in one.presets}
    assert of_papers == set(FACTS)


@each
def test_the_published_sizes_have_the_published_number_of_parameters(name, facts):
    checks.check_count(entry(name), facts.count, facts.opcodes)


@each
def test_scores_do_not_depend_on_the_numbers_of_nodes(name, facts):
    checks.check_relabelling(small(name), facts.example)


def test_the_cut_into_blocks_depends_on_the_numbers_of_nodes():
    model = small("tpugraphs-gst-sage", nodes=16)
    checks.check_relabelling(model, checks.example("layout", 30), matters=True)
    checks.check_relabelling(model, checks.example("layout", 15))


def test_which_of_many_neighbours_count_depends_on_the_numbers_of_nodes():
    name, many = "kaufman-sage-transformer", checks.star(25)
    settings = without_costs(name)
    checks.check_relabelling(small(name, **settings), many, matters=True)
    checks.check_relabelling(small(name, **settings), checks.star(20))
    checks.check_relabelling(small(name, **settings, neighbours=25), many)


def node_vectors(model: torch.nn.Module, given: checks.Example) -> np.ndarray:
    tensors = model.tensors(checks.graph_inputs(given), given.config)
    with torch.no_grad():
        return model.nodes(len(given.opcode), *tensors).numpy()


@pytest.mark.parametrize("name", ["tpugraphs-gst-sage", *(n for n in FACTS if FACTS[n].layers)])
def test_a_node_sees_as_many_hops_as_there_are_layers(name):
    vectors = node_vectors if FACTS[name].task == "layout" else checks.node_vectors
    model = small(name, **without_costs(name))
    checks.check_receptive_field(partial(vectors, model), 3, FACTS[name].task)


@each
def test_only_attention_across_configurations_makes_scores_depend_on_others(name, facts):
    checks.check_configurations(small(name), facts.example, name == CROSS)


@each
def test_degenerate_graphs_have_finite_scores(name, facts):
    checks.check_degenerate_graphs(small(name), facts.task)


@pytest.mark.parametrize("name", of("tile"))
def test_padding_influences_nothing(name):
    checks.check_padding(small(name), checks.example())


@each
def test_onnx_runtime_agrees_with_torch(name, facts, tmp_path):
    if facts.task == "tile":
        checks.check_onnx_of_segment_model(small(name), tmp_path)
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
    assert small(CROSS).form(small(CROSS).settings).pad_value == -1


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


@pytest.fixture
def measured(facts, name, hlorank, tmp_path) -> Path:
    """The features of a measured graph, in the form of an architecture."""
    path = tmp_path / "graph.npz"
    file, module, _ = GRAPHS[facts.task]
    form = entry(name).model.form(entry(name).presets["small"].model)
    featurize(hlorank, [(file, module)], [path], form.pad_value)
    return path


def read(name: str, path: Path) -> Measured:
    model = entry(name).model
    return model.form(entry(name).presets["small"].model).read(path, path.stem)


@each
def test_a_model_learns_the_order_of_one_measured_graph(name, facts, measured):
    *_, ceiling = GRAPHS[facts.task]
    graph = distinct(read(name, measured))
    checks.check_learning(entry(name).model, entry(name).presets["small"], graph, ceiling)


@pytest.mark.parametrize(("name", "facts"), [(name, FACTS[name]) for name in of("layout")])
def test_scores_of_an_exported_model_are_those_of_training(name, measured, tmp_path):
    graph = read(name, measured)
    model = entry(name).model.for_graphs(entry(name).presets["small"].model, [graph]).eval()
    write_whole_graph_onnx(model, tmp_path / "model.onnx")
    chosen = np.arange(len(graph.runtimes))
    exported = OnnxWholeGraphModel(tmp_path / "model.onnx", model.rule)
    expected = model.scores([graph], [chosen]).numpy()
    assert checks.difference(exported.score_file(measured, chosen), expected) < checks.CLOSE


def _ignore_sums(model) -> None:
    for sage in model.encoder.sages:
        with torch.no_grad():
            sage.linear.weight[:, : sage.linear.in_features // 2] = 0


def _ignore_means(model) -> None:
    for one in model.encoder.blocks:
        with torch.no_grad():
            one.join.weight[:, model.settings.hidden :] = 0


def _ignore_users(model) -> None:
    for sage in model.encoder.sages:
        torch.nn.init.zeros_(sage.users.weight)


NO_NEIGHBOURS: dict[str, Callable[[torch.nn.Module], None]] = {
    "tpugraphs-early-sage": _ignore_sums,
    "tgraph-tile": _ignore_users,
    "kaufman-sage-transformer": _ignore_means,
}


@pytest.mark.parametrize("name", NO_NEIGHBOURS)
def test_without_edges_a_model_is_itself_without_its_neighbour_terms(name):
    model, ignoring = (small(name, **without_costs(name)) for _ in range(2))
    NO_NEIGHBOURS[name](ignoring)
    checks.check_no_edges(model, ignoring, checks.example())


def test_every_row_of_kaufmans_graphsage_has_norm_one_or_is_zero():
    model = small("kaufman-sage-transformer")
    norms = np.linalg.norm(checks.node_vectors(model, checks.example()), axis=-1)
    assert norms[norms > 0] == pytest.approx(1, abs=1e-5)
    assert norms.max() > 0


def test_every_row_of_tpugraphs_sage_has_norm_one():
    vectors = checks.node_vectors(small("tpugraphs-early-sage"), checks.example())
    assert np.linalg.norm(vectors, axis=-1) == pytest.approx(1, abs=1e-5)
