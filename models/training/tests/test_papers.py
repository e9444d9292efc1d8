"""Every architecture of the papers passes the checks that all architectures get."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("onnx", reason="onnx is not installed")

from examples import Example, as_graph, example, padded  # noqa: E402
from hlorank_training.data.dataset import Measured, distinct  # noqa: E402
from hlorank_training.data.featurize import featurize  # noqa: E402
from hlorank_training.models.architecture import Architecture  # noqa: E402
from hlorank_training.models.graph_layers import adjacency  # noqa: E402
from hlorank_training.models.segment_model import SegmentBatch, SegmentModel  # noqa: E402
from hlorank_training.models.train import Keeping, train, validation_tau  # noqa: E402
from hlorank_training.papers.tpugraphs_gst import block, block_size  # noqa: E402
from hlorank_training.registry import REGISTRY  # noqa: E402
from hlorank_training.shipping.onnx_model import OnnxModel, write_onnx  # noqa: E402
from hlorank_training.whole_graphs.graph import Inputs, ServingRule, WholeGraph  # noqa: E402
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
NO_EDGES = np.zeros((2, 0), np.int64)


class KernelModel(torch.nn.Module):
    """The whole-graph form of a segment model for tiles: same weights, same scores."""

    kind = "graph"

    def __init__(self, model: SegmentModel):
        super().__init__()
        self.model = model
        self.settings = model.settings

    def forward(
        self, opcode, features, edges, configuration: tuple[torch.Tensor, ...]
    ) -> torch.Tensor:
        """Maps opcode i64 [N], features f32 [N,140], edges i64 [2,E] (consumers, producers) and
        config f32 [C,24] to scores f32 [C]."""
        (config,) = configuration
        static = (
            opcode,
            features,
            adjacency(edges, opcode.shape[0]),
            torch.ones_like(features[:, 0]),
        )
        segment = torch.zeros_like(config[:, 0], dtype=torch.int64)
        embedding = self.model.encoder(*(part.unsqueeze(0) for part in static), segment, config)
        return self.model.head(embedding)


def scores(model: torch.nn.Module, given: Example) -> np.ndarray:
    """Scores f32 [C], by the whole-graph form of a segment model."""
    form = KernelModel(model) if model.kind == "segment" else model
    configuration = (
        (given.config,) if given.configurable is None else (given.configurable, given.config)
    )
    tensors = map(torch.from_numpy, (given.opcode, given.features, given.edges))
    with torch.no_grad():
        return form.eval()(*tensors, tuple(map(torch.from_numpy, configuration))).numpy()


def as_whole_graph(given: Example) -> WholeGraph:
    """The graph as the training of whole-graph models reads it."""
    runtimes = 1000 + np.arange(len(given.config))
    return WholeGraph("example", graph_inputs(given), given.config, runtimes, None)


def graph_inputs(given: Example) -> Inputs:
    """The inputs of ``model.onnx`` that belong to the graph."""
    inputs = {"opcode": given.opcode, "features": given.features, "edges": given.edges}
    return inputs if given.configurable is None else inputs | {"configurable": given.configurable}


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
    def example(self) -> Example:
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


def of(task: str) -> list[str]:
    return [name for name, facts in FACTS.items() if facts.task == task]


def entry(name: str) -> Architecture:
    return REGISTRY.find(FACTS[name].task, name)


def small(name: str, **changes) -> torch.nn.Module:
    """A model of preset ``small``, with changed settings, random weights and the statistics of two
    examples."""
    torch.manual_seed(0)
    model, settings = entry(name).model, entry(name).presets["small"].model
    read = as_graph if model.kind == "segment" else as_whole_graph
    graphs = [read(example(settings.task, 12, seed=number)) for number in (0, 1)]
    return model.for_graphs(replace(settings, **changes), graphs).eval()


def without_costs(name: str) -> dict[str, bool]:
    """The costs of a kernel, which Kaufman joins at every node, depend on all nodes and edges."""
    return {"costs": False} if name.startswith("kaufman") else {}


def test_every_architecture_of_a_paper_is_checked():
    of_papers = {one.name for one in REGISTRY.entries if "paper" in one.presets}
    assert of_papers == set(FACTS)


@each
def test_the_published_sizes_have_the_published_number_of_parameters(name, facts):
    model = entry(name).model(entry(name).presets["paper"].model)
    tables = [m for m in model.modules() if isinstance(m, torch.nn.Embedding)]
    widths = sum(m.embedding_dim for m in tables if m.num_embeddings == OPCODE_ROWS)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    assert parameters == facts.count + (OPCODE_ROWS - facts.opcodes) * widths


def changes_by_numbers(model: torch.nn.Module, given: Example) -> bool:
    """Whether scores depend on the numbers of nodes."""
    order = np.random.default_rng(1).permutation(len(given.opcode))
    place = np.argsort(order)
    configurable = None if given.configurable is None else place[given.configurable]
    static = (given.opcode[order], given.features[order], place[given.edges])
    relabelled = Example(*static, given.config, configurable)
    return difference(scores(model, relabelled), scores(model, given)) > CLOSE


@each
def test_scores_do_not_depend_on_the_numbers_of_nodes(name, facts):
    assert not changes_by_numbers(small(name), facts.example)


def test_the_cut_into_blocks_depends_on_the_numbers_of_nodes():
    model = small("tpugraphs-gst-sage", nodes=16)
    assert changes_by_numbers(model, example("layout", 30))
    assert not changes_by_numbers(model, example("layout", 15))


def test_which_of_many_neighbours_count_depends_on_the_numbers_of_nodes():
    def star(leaves: int) -> Example:
        edges = np.stack([np.arange(1, leaves + 1), np.zeros(leaves, np.int64)])
        return replace(example("tile", leaves + 1, seed=6), edges=edges)

    kaufman = partial(small, "kaufman-sage-transformer", costs=False)
    assert changes_by_numbers(kaufman(), star(25))
    assert not changes_by_numbers(kaufman(), star(20))
    assert not changes_by_numbers(kaufman(neighbours=25), star(25))


def encoder_inputs(given: Example, padding: int = 0) -> list[torch.Tensor]:
    """The six inputs of an encoder; padding nodes hold garbage."""
    static = [given.opcode, given.features, as_graph(given).segments[0].operands]
    static.append(np.ones(len(given.opcode), np.float32))
    rows = np.zeros(len(given.config), np.int64), given.config
    inputs = padded([*(array[None] for array in static), *rows], padding)
    return [torch.from_numpy(array) for array in inputs]


def node_vectors(model: torch.nn.Module, given: Example) -> np.ndarray:
    """The vectors [C,N,H] of a model, or of an encoder, that has ``nodes``."""
    with torch.no_grad():
        if model.kind == "segment":
            return model.encoder.nodes(SegmentBatch(*encoder_inputs(given))).numpy()
        tensors = model.tensors(graph_inputs(given), given.config)
        return model.nodes(len(given.opcode), *tensors).numpy()


def part(given: Example, start: int, end: int) -> Example:
    """The nodes from ``start`` to before ``end``, with the edges between them."""
    within = (given.edges >= start) & (given.edges < end)
    static = (given.opcode[start:end], given.features[start:end])
    edges = given.edges[:, within.all(0)] - start
    if given.configurable is None:
        return Example(*static, edges, given.config)
    slots = (given.configurable >= start) & (given.configurable < end)
    return Example(*static, edges, given.config[:, slots], given.configurable[slots] - start)


@pytest.mark.parametrize("name", ["tpugraphs-gst-sage", *(n for n in FACTS if FACTS[n].layers)])
def test_a_node_sees_as_many_hops_as_there_are_layers(name):
    vectors = partial(node_vectors, small(name, **without_costs(name)))
    hops, middle = 3, 6
    chain = np.stack([np.arange(1, 4 * hops), np.arange(4 * hops - 1)])
    long = replace(example(FACTS[name].task, 4 * hops, seed=5), edges=chain)
    expected = vectors(long)[:, middle]
    near = part(long, middle - hops, middle + hops + 1)
    assert difference(vectors(near)[:, hops], expected) < CLOSE
    nearer = part(long, middle - hops + 1, middle + hops)
    assert difference(vectors(nearer)[:, hops - 1], expected) > CLOSE


@each
def test_only_attention_across_configurations_makes_scores_depend_on_others(name, facts):
    model, given = small(name), facts.example
    many = replace(given, config=np.resize(given.config, (128, *given.config.shape[1:])))
    expected = scores(model, many)
    order = np.random.default_rng(1).permutation(len(expected))
    shuffled = scores(model, replace(many, config=many.config[order]))
    assert difference(shuffled, expected[order]) < CLOSE
    assert np.ptp(expected) > 1e-4 * np.abs(expected).max(), "scores depend on the configuration"
    for count in (1, 4):
        few = scores(model, replace(many, config=many.config[:count]))
        assert (difference(few, expected[:count]) > CLOSE) == (name == CROSS)


@each
def test_degenerate_graphs_have_finite_scores(name, facts):
    base = example(facts.task)
    graphs = [base, example(facts.task, nodes=1)]
    graphs = [replace(given, edges=NO_EDGES) for given in graphs]
    if facts.task == "layout":
        graphs.append(replace(base, configurable=base.configurable[:0], config=base.config[:, :0]))
    for given in graphs:
        assert np.isfinite(scores(small(name), given)).all()


@pytest.mark.parametrize("name", of("tile"))
def test_padding_influences_nothing(name):
    encoder = small(name).encoder
    with torch.no_grad():
        expected = encoder(*encoder_inputs(example()))
        for padding in (3, 11):
            actual = encoder(*encoder_inputs(example(), padding))
            assert difference(actual.numpy(), expected.numpy()) < 1e-6


SHAPES = ((9, 6), (1, 4), (30, 12))


@pytest.mark.parametrize("name", of("tile"))
def test_rows_of_an_exported_segment_model_are_those_of_torch_and_the_same_among_others(
    name, tmp_path
):
    model = small(name)
    write_onnx(model, tmp_path)
    exported = OnnxModel(tmp_path)
    for nodes, configs in SHAPES:
        given = example("tile", nodes, configs, seed=3)
        inputs = [tensor.numpy() for tensor in encoder_inputs(given)]
        embedding = exported.encode(inputs)
        assert difference(exported.head(embedding), scores(model, given)) < CLOSE
        chosen = [0, 1, 3, 2]
        some = exported.encode([*inputs[:4], inputs[4][chosen], inputs[5][chosen]])
        assert (some == embedding[chosen]).all()


@each
def test_onnx_runtime_agrees_with_torch_on_whole_graphs(name, facts, tmp_path):
    model, path = small(name), tmp_path / "model.onnx"
    write_whole_graph_onnx(KernelModel(model).eval() if facts.task == "tile" else model, path)
    exported = OnnxWholeGraphModel(path, ServingRule(100))
    for nodes, configs in SHAPES:
        given = example(facts.task, nodes, configs, seed=3)
        actual = exported.score(graph_inputs(given), given.config)
        assert difference(actual, scores(model, given)) < CLOSE


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
    given = example("layout", 30)
    size = block_size(30, 16)
    within = given.edges[0] // size == given.edges[1] // size
    assert not within.all(), "edges between blocks are dropped"
    cut = replace(given, edges=given.edges[:, within])
    expected = scores(model, given)
    assert difference(scores(model, cut), expected) < CLOSE
    total, whole = 0, small("tpugraphs-gst-sage")
    for number in (0, 1):
        inputs, config = block(graph_inputs(given), given.config, size, number)
        total = total + scores(whole, Example(**inputs, config=config))
    assert difference(total, expected) < CLOSE


def test_a_step_of_segment_training_computes_gradients_of_one_block():
    model = small("tpugraphs-gst-sage", nodes=16, keep=1.0, dropout=0.0).train()
    graph = as_whole_graph(example("layout", 30))
    chosen = np.arange(len(graph.runtimes))
    torch.manual_seed(0)
    for _ in range(12):
        trained = model.training_scores(graph, chosen).detach().numpy()
    expected = scores(model, example("layout", 30))
    # The trained block stands for the average of both, and the other one has its last score.
    table = model.last_scores["example"].numpy()
    assert difference(table.sum(0), expected) < CLOSE
    candidates = [2 * table[number] + table[1 - number] for number in (0, 1)]
    assert min(difference(trained, c) for c in candidates) < CLOSE


def test_one_block_is_trained_as_the_whole_graph():
    model = small("tpugraphs-gst-sage", dropout=0.0).train()
    given = example("layout", 30)
    graph = as_whole_graph(given)
    trained = model.training_scores(graph, np.arange(6)).detach().numpy()
    assert difference(trained, scores(model, given)) < CLOSE


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
    graph = distinct(read(name, measured))
    *_, ceiling = GRAPHS[facts.task]
    preset = entry(name).presets["small"]
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


@pytest.mark.parametrize(("name", "facts"), [(name, FACTS[name]) for name in of("layout")])
def test_scores_of_an_exported_model_are_those_of_training(name, measured, tmp_path):
    graph = read(name, measured)
    model = entry(name).model.for_graphs(entry(name).presets["small"].model, [graph]).eval()
    write_whole_graph_onnx(model, tmp_path / "model.onnx")
    chosen = np.arange(len(graph.runtimes))
    exported = OnnxWholeGraphModel(tmp_path / "model.onnx", model.rule)
    expected = model.scores([graph], [chosen]).numpy()
    assert difference(exported.score_file(measured, chosen), expected) < CLOSE


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
    alone = scores(model, replace(example(), edges=NO_EDGES))
    assert difference(scores(ignoring, example()), alone) < CLOSE
    assert difference(scores(model, example()), alone) > CLOSE


def test_every_row_of_kaufmans_graphsage_has_norm_one_or_is_zero():
    model = small("kaufman-sage-transformer")
    norms = np.linalg.norm(node_vectors(model, example()), axis=-1)
    assert norms[norms > 0] == pytest.approx(1, abs=1e-5)
    assert norms.max() > 0


def test_every_row_of_tpugraphs_sage_has_norm_one():
    vectors = node_vectors(small("tpugraphs-early-sage"), example())
    assert np.linalg.norm(vectors, axis=-1) == pytest.approx(1, abs=1e-5)
