"""Writes a whole-graph model as ONNX, and runs it as the server does."""

from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.export import Dim

from hlorank_training.models.layout_part import SLOTS
from hlorank_training.models.segment_model import FEATURES, OPCODES, TILE_FEATURES
from hlorank_training.shipping.export import Exported, common_fields
from hlorank_training.shipping.golden import GoldenRule
from hlorank_training.shipping.onnx_files import export_module, session
from hlorank_training.whole_graphs.graph import Inputs, ServingRule, model_inputs
from hlorank_training.whole_graphs.model import WholeGraphModel


def inputs(task: str) -> tuple[str, ...]:
    """Returns the inputs of ``model.onnx`` in order."""
    configurable = ("configurable",) if task == "layout" else ()
    return ("opcode", "features", "edges", *configurable, "config")


def write_whole_graph_onnx(model: nn.Module, path: Path) -> None:
    """Writes ``model.onnx``, which contains its weights."""
    task = model.settings.task
    example = _example(task)
    dimensions = _dimensions(task)
    export_module(model, example, inputs(task), ("score",), dimensions, path)


def _example(task: str) -> tuple:
    nodes = 5
    edges = 6
    slots = 3
    configs = 4
    layouts = torch.randint(-1, 6, (configs, slots, SLOTS))
    configuration = (
        (torch.arange(slots), layouts)
        if task == "layout"
        else (torch.rand(configs, TILE_FEATURES),)
    )
    return (
        torch.randint(0, OPCODES, (nodes,)),
        torch.rand(nodes, FEATURES),
        torch.randint(0, nodes, (2, edges)),
        configuration,
    )


def _dimensions(task: str) -> tuple:
    nodes = Dim("N")
    edges = Dim("E")
    slots = Dim("K")
    configs = Dim("C")
    layout = ({0: slots}, {0: configs, 1: slots})
    return ({0: nodes}, {0: nodes}, {1: edges}, layout if task == "layout" else ({0: configs},))


class OnnxWholeGraphModel:
    """The exported model, run by ONNX Runtime on one thread, as the server runs it."""

    def __init__(self, path: Path, rule: ServingRule):
        self._session = session(path)
        self._rule = rule

    def score_file(self, path: Path, chosen: np.ndarray) -> np.ndarray:
        """Returns scores f32 [c] of the ``chosen`` configurations of a features file."""
        with np.load(path) as arrays:
            graph, config = model_inputs(arrays)
        return self.score(graph, config[chosen])

    def score(self, graph: Inputs, config: np.ndarray) -> np.ndarray:
        """Scores configurations chunk by chunk, and averages over the orders: f32 [C]."""
        graph = self._rule.graph(graph)

        def score(chunk: np.ndarray) -> np.ndarray:
            return self._session.run(None, {**graph, "config": config[chunk]})[0]

        return self._rule.mean_scores(len(config), score)


def write_whole_graph_model(model: WholeGraphModel, folder: Path) -> Exported:
    """Writes ``model.onnx``."""
    path = folder / "model.onnx"
    write_whole_graph_onnx(model, path)
    fields = {**model.rule.manifest_fields(), "batch_dependent": model.batch_dependent}
    score = OnnxWholeGraphModel(path, model.rule).score_file
    golden = GoldenRule(whole_batch=model.rule.whole_batch())
    return Exported((path.name,), common_fields(model) | fields, score, golden)
