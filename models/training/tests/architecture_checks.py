"""The checks that every architecture gets, for segment models of tiles and whole-graph models.

All of them score an ``Example``. ``tests/test_papers.py`` shows their use.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch

from examples import Example, as_graph, example
from hlorank_training.data.dataset import Measured
from hlorank_training.models.architecture import Architecture, Preset
from hlorank_training.models.graph_layers import adjacency
from hlorank_training.models.segment_model import SegmentBatch, SegmentModel
from hlorank_training.models.train import Keeping, train, validation_tau
from hlorank_training.shipping.onnx_model import OnnxModel, write_onnx
from hlorank_training.whole_graphs.graph import Inputs, ServingRule, WholeGraph
from hlorank_training.whole_graphs.onnx_model import OnnxWholeGraphModel, write_whole_graph_onnx

CLOSE = 1e-5
"""Maximum difference relative to the largest score."""
OPCODE_ROWS = 128
"""Rows of every opcode table; the papers' tables have fewer."""


class KernelModel(torch.nn.Module):
    """The whole-graph form of a segment model for tiles: same weights, same scores."""

    kind = "graph"

    def __init__(self, model: SegmentModel):
        super().__init__()
        self.model, self.settings, self.architecture = model, model.settings, model.architecture

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


def fitted(model_class, settings, seed: int = 0) -> torch.nn.Module:
    """A model with random weights and the statistics of two examples."""
    torch.manual_seed(seed)
    read = as_graph if model_class.kind == "segment" else as_whole_graph
    graphs = [read(example(settings.task, 12, seed=number)) for number in (0, 1)]
    return model_class.for_graphs(settings, graphs).eval()


def difference(actual: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference, relative to the largest expected score."""
    return float(np.abs(actual - expected).max() / max(np.abs(expected).max(), 1e-6))


def parameters(model: torch.nn.Module) -> int:
    """The number of trained parameters."""
    return sum(parameter.numel() for parameter in model.parameters())


def small(entry: Architecture, seed: int = 0, **changes) -> torch.nn.Module:
    """A model of preset ``small``, with changed settings and random weights."""
    return fitted(entry.model, replace(entry.presets["small"].model, **changes), seed)


def check_count(entry: Architecture, count: int, opcodes: int) -> None:
    """Check 1: preset ``paper`` has ``count`` parameters with ``opcodes`` rows of its table."""
    model = entry.model(entry.presets["paper"].model)
    tables = [m for m in model.modules() if isinstance(m, torch.nn.Embedding)]
    widths = sum(m.embedding_dim for m in tables if m.num_embeddings == OPCODE_ROWS)
    assert parameters(model) == count + (OPCODE_ROWS - opcodes) * widths


def relabelled(given: Example, order: np.ndarray) -> Example:
    """The same graph, of which node ``order[i]`` becomes node ``i``."""
    place = np.argsort(order)
    configurable = None if given.configurable is None else place[given.configurable]
    static = (given.opcode[order], given.features[order], place[given.edges])
    return Example(*static, given.config, configurable)


def check_relabelling(model, given: Example, matters: bool = False) -> None:
    """Check 2: scores do not depend on the numbers of nodes, unless the architecture's do."""
    order = np.random.default_rng(1).permutation(len(given.opcode))
    assert (
        difference(scores(model, relabelled(given, order)), scores(model, given)) > CLOSE
    ) == matters


def check_configurations(model, given: Example, batch_dependent: bool = False) -> None:
    """Check 3: permuted configurations have permuted scores, each by itself where it should."""
    many = replace(given, config=np.resize(given.config, (128, *given.config.shape[1:])))
    expected = scores(model, many)
    order = np.random.default_rng(1).permutation(len(expected))
    assert (
        difference(scores(model, replace(many, config=many.config[order])), expected[order]) < CLOSE
    )
    assert np.ptp(expected) > 1e-4 * np.abs(expected).max(), "scores depend on the configuration"
    for count in (1, 4):
        few = scores(model, replace(many, config=many.config[:count]))
        assert (difference(few, expected[:count]) > CLOSE) == batch_dependent


def check_degenerate_graphs(model, task: str) -> None:
    """Check 4: graphs without edges, of one node and without configurable nodes have scores."""
    base = example(task)
    no_edges = np.zeros((2, 0), np.int64)
    lone = replace(example(task, nodes=1), edges=no_edges)
    graphs = [replace(base, edges=no_edges), lone]
    if task == "layout":
        graphs.append(replace(base, configurable=base.configurable[:0], config=base.config[:, :0]))
    for given in graphs:
        assert np.isfinite(scores(model, given)).all()


def check_no_edges(model, without_neighbours, given: Example) -> None:
    """Check 4: without edges a model equals ``without_neighbours``, its copy that ignores them."""
    alone = replace(given, edges=np.zeros((2, 0), np.int64))
    assert difference(scores(without_neighbours, given), scores(model, alone)) < CLOSE
    assert difference(scores(model, given), scores(model, alone)) > CLOSE


def encoder_inputs(given: Example, padding: int = 0) -> list[torch.Tensor]:
    """The six inputs of an encoder; padding nodes hold garbage."""
    graph = as_graph(given)
    node, rows = (0, padding), len(given.config)
    arrays = [
        np.pad(given.opcode, node, constant_values=7),
        np.pad(given.features, (node, (0, 0)), constant_values=3),
        np.pad(graph.segments[0].operands, (node, node), constant_values=1),
        np.pad(np.ones(len(given.opcode), np.float32), node),
    ]
    static = [torch.from_numpy(array).unsqueeze(0) for array in arrays]
    return [*static, torch.zeros(rows, dtype=torch.int64), torch.from_numpy(given.config)]


def check_padding(model, given: Example) -> None:
    """Check 5: a segment has one embedding, whatever its padding."""
    with torch.no_grad():
        expected = model.encoder(*encoder_inputs(given))
        for padding in (3, 11):
            actual = model.encoder(*encoder_inputs(given, padding))
            assert difference(actual.numpy(), expected.numpy()) < 1e-6


def check_onnx_of_segment_model(model, folder) -> None:
    """Check 6: ONNX Runtime agrees with torch, and rows are equal to the bit among others."""
    write_onnx(model, folder)
    exported = OnnxModel(folder)
    for nodes, configs in ((9, 6), (1, 4), (30, 12)):
        given = example("tile", nodes, configs, seed=3)
        inputs = [tensor.numpy() for tensor in encoder_inputs(given)]
        embedding = exported.encode(inputs)
        assert difference(exported.head(embedding), scores(model, given)) < CLOSE
        chosen = [0, 1, 3, 2]
        some = exported.encode([*inputs[:4], inputs[4][chosen], inputs[5][chosen]])
        assert (some == embedding[chosen]).all()


def check_onnx_of_whole_graph_model(model, path) -> None:
    """Check 6: ONNX Runtime agrees with torch on whole graphs of any shape."""
    form = KernelModel(model).eval() if model.kind == "segment" else model
    write_whole_graph_onnx(form, path)
    exported = OnnxWholeGraphModel(path, ServingRule(100))
    for nodes, configs in ((9, 6), (1, 4), (30, 12)):
        given = example(model.settings.task, nodes, configs, seed=3)
        actual = exported.score(graph_inputs(given), given.config)
        assert difference(actual, scores(model, given)) < CLOSE


def chain(nodes: int, task: str = "tile") -> Example:
    """A chain: every node consumes the one before it."""
    edges = np.stack([np.arange(1, nodes), np.arange(nodes - 1)])
    return replace(example(task, nodes, seed=5), edges=edges)


def part(given: Example, start: int, end: int) -> Example:
    """The nodes from ``start`` to before ``end``, with the edges between them."""
    within = (given.edges >= start) & (given.edges < end)
    static = (given.opcode[start:end], given.features[start:end])
    edges = given.edges[:, within.all(0)] - start
    if given.configurable is None:
        return Example(*static, edges, given.config)
    slots = (given.configurable >= start) & (given.configurable < end)
    return Example(*static, edges, given.config[:, slots], given.configurable[slots] - start)


def check_receptive_field(vectors, layers: int, task: str = "tile") -> None:
    """Check 8: a node's vector depends on its neighbourhood of as many hops as layers alone.

    ``vectors`` maps an example to the vectors [C,N,H] of its nodes.
    """
    hops = layers
    long, middle = chain(4 * hops, task), 2 * hops
    expected = vectors(long)[:, middle]
    near = part(long, middle - hops, middle + hops + 1)
    assert difference(vectors(near)[:, hops], expected) < CLOSE
    nearer = part(long, middle - hops + 1, middle + hops)
    assert difference(vectors(nearer)[:, hops - 1], expected) > CLOSE


def node_vectors(model, given: Example) -> np.ndarray:
    """The vectors [C,N,H] of an encoder that has ``nodes``."""
    opcode, features, operands, mask, segment, config = encoder_inputs(given)
    with torch.no_grad():
        batch = SegmentBatch(opcode, features, operands, mask, segment, config)
        return model.eval().encoder.nodes(batch).numpy()


def star(leaves: int, task: str = "tile") -> Example:
    """A node with as many users, of which the last ones have other features than the first."""
    edges = np.stack([np.arange(1, leaves + 1), np.zeros(leaves, np.int64)])
    return replace(example(task, leaves + 1, seed=6), edges=edges)


def check_learning(model_class, preset: Preset, graph: Measured, ceiling: float) -> None:
    """Check 9: fitted to one graph alone, a model orders it to 0.9 of its noise ceiling."""
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

    with pytest.raises(StopIteration):
        train(model_class, replace(preset, training=training), [graph] * 30, [graph], Keeping(stop))
