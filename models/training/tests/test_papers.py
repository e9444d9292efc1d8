"""Every architecture of the papers passes the checks that all architectures get."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("onnx", reason="onnx is not installed")

from examples import example, form_for, untrained  # noqa: E402
from hlorank_training.data.batch import make_batch  # noqa: E402
from hlorank_training.data.dataset import distinct  # noqa: E402
from hlorank_training.data.featurize import featurize  # noqa: E402
from hlorank_training.data.prepare import Form  # noqa: E402
from hlorank_training.models.architecture import Architecture  # noqa: E402
from hlorank_training.models.segment_model import SegmentBatch  # noqa: E402
from hlorank_training.models.train import Keeping, train, validation_tau  # noqa: E402
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

CLOSE = 1e-5
"""Maximum difference relative to the largest score."""
OPCODE_ROWS = 128
"""Rows of every opcode table; the papers' tables have fewer."""


def scores(model: torch.nn.Module, given: WholeGraph) -> np.ndarray:
    """Scores f32 [C] of a model in evaluation."""
    graph = form_for(model.kind, given)
    with torch.no_grad():
        return model.eval().scores([graph], [np.arange(len(given.config))]).numpy()


def with_edges(given: WholeGraph, edges: np.ndarray) -> WholeGraph:
    """The graph with other edges."""
    return replace(given, inputs=given.inputs | {"edges": edges})


def without_edges(given: WholeGraph) -> WholeGraph:
    return with_edges(given, np.zeros((2, 0), np.int64))


def difference(actual: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference, relative to the largest expected score."""
    return float(np.abs(actual - expected).max() / max(np.abs(expected).max(), 1e-6))


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
    def example(self) -> WholeGraph:
        """A random graph."""
        return example(self.task, 20 if self.task == "layout" else 9)


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


def entry(name: str) -> Architecture:
    return REGISTRY.find(FACTS[name].task, name)


def small(name: str, **changes) -> torch.nn.Module:
    return untrained(FACTS[name].task, name, **changes)


def without_costs(name: str) -> dict[str, bool]:
    """The costs of a kernel, which Kaufman joins at every node, depend on all nodes and edges."""
    return {"costs": False} if name.startswith("kaufman") else {}


def test_every_architecture_of_a_paper_is_checked():
    of_papers = {one.name for one in REGISTRY.entries if "paper" in one.presets}
    assert of_papers == set(FACTS)


@each
def test_the_published_sizes_have_the_published_number_of_parameters(name, facts):
    model = entry(name).model(entry(name).preset("paper").model)
    tables = [m for m in model.modules() if isinstance(m, torch.nn.Embedding)]
    widths = sum(m.embedding_dim for m in tables if m.num_embeddings == OPCODE_ROWS)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    assert parameters == facts.count + (OPCODE_ROWS - facts.opcodes) * widths


def changes_by_numbers(model: torch.nn.Module, given: WholeGraph) -> bool:
    """Whether scores depend on the numbers of nodes."""
    order = np.random.default_rng(1).permutation(len(given.inputs["opcode"]))
    place = np.argsort(order)
    relabelled = {
        name: place[array] if name in ("edges", "configurable") else array[order]
        for name, array in given.inputs.items()
    }
    other = scores(model, replace(given, inputs=relabelled))
    return difference(other, scores(model, given)) > CLOSE


@each
def test_scores_do_not_depend_on_the_numbers_of_nodes(name, facts):
    assert not changes_by_numbers(small(name), facts.example)


def test_the_cut_into_blocks_depends_on_the_numbers_of_nodes():
    model = small("tpugraphs-gst-sage", nodes=16)
    assert changes_by_numbers(model, example("layout", 30))
    assert not changes_by_numbers(model, example("layout", 15))


def test_which_of_many_neighbours_count_depends_on_the_numbers_of_nodes():
    def star(leaves: int) -> WholeGraph:
        edges = np.stack([np.arange(1, leaves + 1), np.zeros(leaves, np.int64)])
        return with_edges(example("tile", leaves + 1, seed=6), edges)

    kaufman = partial(small, "kaufman-sage-transformer", costs=False)
    assert changes_by_numbers(kaufman(), star(21))
    assert not changes_by_numbers(kaufman(), star(20))
    assert not changes_by_numbers(kaufman(neighbours=21), star(21))


def node_vectors(model: torch.nn.Module, given: WholeGraph) -> np.ndarray:
    """The vectors [C,N,H] of a model, or of an encoder, that has ``nodes``."""
    nodes = len(given.inputs["opcode"])
    with torch.no_grad():
        if model.kind == "graph":
            return model.nodes(nodes, *model.tensors(given.inputs, given.config)).numpy()
        graph = form_for("segment", given)
        (bucket,) = make_batch([graph], [np.arange(len(given.config))]).buckets
        vectors = model.encoder.nodes(SegmentBatch(*map(torch.from_numpy, bucket.inputs)))
        return vectors.numpy()[:, :nodes]


@pytest.mark.parametrize("name", ["tpugraphs-gst-sage", *(n for n in FACTS if FACTS[n].layers)])
def test_a_node_sees_as_many_hops_as_there_are_layers(name):
    model = small(name, **without_costs(name))
    hops, middle = 3, 6
    chain = np.stack([np.arange(1, 12), np.arange(11)])
    given = with_edges(example(FACTS[name].task, 12, seed=5), chain)
    expected = node_vectors(model, given)[:, middle]
    for distance in (hops, hops + 1):
        opcode = given.inputs["opcode"].copy()
        opcode[[middle - distance, middle + distance]] = 1
        changed = replace(given, inputs=given.inputs | {"opcode": opcode})
        found = node_vectors(model, changed)[:, middle]
        assert (difference(found, expected) > CLOSE) == (distance == hops)


@each
def test_only_attention_across_configurations_makes_scores_depend_on_others(name, facts):
    model = small(name)
    many = facts.example.subset(np.arange(128) % 6)
    expected = scores(model, many)
    order = np.random.default_rng(1).permutation(128)
    assert difference(scores(model, many.subset(order)), expected[order]) < CLOSE
    assert np.ptp(expected) > 1e-4 * np.abs(expected).max(), "scores depend on the configuration"
    for count in (1, 4):
        few = scores(model, many.subset(np.arange(count)))
        assert (difference(few, expected[:count]) > CLOSE) == (name == CROSS)


@each
def test_degenerate_graphs_have_finite_scores(name, facts):
    base = example(facts.task)
    graphs = [without_edges(base), without_edges(example(facts.task, nodes=1))]
    if facts.task == "layout":
        inputs = base.inputs | {"configurable": np.zeros(0, np.int64)}
        graphs.append(replace(base, inputs=inputs, config=base.config[:, :0]))
    for given in graphs:
        assert np.isfinite(scores(small(name), given)).all()


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


def test_chunks_orders_and_the_pad_value_of_tgraph_are_those_of_its_authors():
    model = small(CROSS)
    assert [len(chunk) for chunk in model.rule.chunks(300)] == [100] * 30
    assert [len(chunk) for chunk in model.rule.chunks(128)] == [128]
    assert model.form(model.settings).pad_value == -1


@pytest.mark.parametrize(
    ("nodes", "sizes"), [(372, [372]), (1000, [501, 499]), (2500, [834, 834, 832])]
)
def test_blocks_are_as_equal_as_in_the_code(nodes, sizes):
    size = block_size(nodes, 1000)
    starts = range(0, nodes, size)
    assert [min(size, nodes - start) for start in starts] == sizes


def test_scores_of_blocks_without_edges_between_them_add_up():
    model = small("tpugraphs-gst-sage", nodes=16)
    given = example("layout", 30)
    size = block_size(30, 16)
    consumers, producers = given.inputs["edges"]
    within = consumers // size == producers // size
    assert not within.all(), "edges between blocks are dropped"
    cut = with_edges(given, given.inputs["edges"][:, within])
    expected = scores(model, given)
    assert difference(scores(model, cut), expected) < CLOSE
    total, whole = 0, small("tpugraphs-gst-sage")
    for number in (0, 1):
        inputs, config = block(given.inputs, given.config, size, number)
        total = total + scores(whole, replace(given, inputs=inputs, config=config))
    assert difference(total, expected) < CLOSE


def test_a_step_of_segment_training_computes_gradients_of_one_block():
    model = small("tpugraphs-gst-sage", nodes=16, keep=1.0, dropout=0.0).train()
    graph = example("layout", 30)
    torch.manual_seed(0)
    for _ in range(12):
        trained = model.training_scores(graph, np.arange(6)).detach().numpy()
    expected = scores(model, graph)
    # The trained block stands for the average of both, and the other one has its last score.
    table = model.last_scores["example"].numpy()
    assert difference(table.sum(0), expected) < CLOSE
    candidates = [2 * table[number] + table[1 - number] for number in (0, 1)]
    assert min(difference(trained, c) for c in candidates) < CLOSE


def test_one_block_is_trained_as_the_whole_graph():
    model = small("tpugraphs-gst-sage", dropout=0.0).train()
    graph = example("layout", 30)
    trained = model.training_scores(graph, np.arange(6)).detach().numpy()
    assert difference(trained, scores(model, graph)) < CLOSE


def form(name: str) -> Form:
    return entry(name).model.form(entry(name).preset("small").model)


@pytest.fixture
def measured(facts, name, hlorank, tmp_path) -> Path:
    """The features of a measured graph, in the form of an architecture."""
    path = tmp_path / "graph.npz"
    file, module, _ = GRAPHS[facts.task]
    featurize(hlorank, [(file, module)], [path], form(name).pad_value)
    return path


@each
def test_a_model_learns_the_order_of_one_measured_graph(name, facts, measured):
    graph = distinct(form(name).read(measured, "graph"))
    *_, ceiling = GRAPHS[facts.task]
    preset = entry(name).preset("small")
    training = replace(
        preset.training,
        epochs=100,
        minutes=5,
        patience=100,
        learning_rate=3e-3,
        graphs_per_step=1,
        configurations_per_graph=64,
    )

    def stop(model: torch.nn.Module) -> None:
        if validation_tau(model, [graph]) > 0.9 * ceiling:
            raise StopIteration

    preset = replace(preset, training=training)
    with pytest.raises(StopIteration):
        train(entry(name).model, preset, [graph] * 30, [graph], Keeping(stop))


@pytest.mark.parametrize(
    ("name", "facts"), [pair for pair in FACTS.items() if pair[1].task == "layout"]
)
def test_scores_of_an_exported_model_are_those_of_training(name, measured, tmp_path):
    graph = form(name).read(measured, "graph")
    model = small(name)
    path = tmp_path / "model.onnx"
    write_whole_graph_onnx(model, path)
    chosen = np.arange(len(graph.runtimes))
    expected = model.scores([graph], [chosen]).numpy()
    actual = OnnxWholeGraphModel(path, model.rule).score_file(measured, chosen)
    assert difference(actual, expected) < CLOSE
    unpruned = OnnxWholeGraphModel(path, replace(model.rule, nodes="all"))
    for nodes, configs in ((9, 6), (1, 4), (30, 12)):
        given = example("layout", nodes, configs, seed=3)
        actual = unpruned.score(given.inputs, given.config)
        assert difference(actual, scores(model, given)) < CLOSE


NEIGHBOUR_WEIGHTS: dict[str, Callable[[torch.nn.Module], list[torch.Tensor]]] = {
    "tpugraphs-early-sage": lambda encoder: [
        sage.linear.weight[:, : sage.linear.in_features // 2] for sage in encoder.sages
    ],
    "tgraph-tile": lambda encoder: [sage.users.weight for sage in encoder.sages],
    "kaufman-sage-transformer": lambda encoder: [
        block.join.weight[:, block.join.out_features :] for block in encoder.blocks
    ],
}


@pytest.mark.parametrize("name", NEIGHBOUR_WEIGHTS)
def test_without_edges_a_model_is_itself_without_its_neighbour_terms(name):
    model, ignoring = (small(name, **without_costs(name)) for _ in range(2))
    with torch.no_grad():
        for weights in NEIGHBOUR_WEIGHTS[name](ignoring.encoder):
            weights.zero_()
    alone = scores(model, without_edges(example()))
    assert difference(scores(ignoring, example()), alone) < CLOSE
    assert difference(scores(model, example()), alone) > CLOSE


@pytest.mark.parametrize("name", ["kaufman-sage-transformer", "tpugraphs-early-sage"])
def test_every_row_of_graphsage_has_norm_one(name):
    norms = np.linalg.norm(node_vectors(small(name), example()), axis=-1)
    if name.startswith("kaufman"):
        norms = norms[norms > 0]  # a row of which no value is positive stays zero
    assert norms.size and norms == pytest.approx(1, abs=1e-5)
