"""Writes the ONNX files of models of either kind."""

from pathlib import Path

from torch import nn

from hlorank_research.whole_graphs.model import WholeGraphModel
from hlorank_research.whole_graphs.onnx_model import OnnxWholeGraphModel, write_whole_graph_onnx
from hlorank_training.shipping.export import Exported, common_fields, write_segment_model
from hlorank_training.shipping.golden import GoldenRule


def write_model(model: nn.Module, folder: Path) -> Exported:
    """Writes a segment model or a whole-graph model."""
    write = write_segment_model if model.kind == "segment" else write_whole_graph_model
    return write(model, folder)


def write_whole_graph_model(model: WholeGraphModel, folder: Path) -> Exported:
    """Writes ``model.onnx``."""
    path = folder / "model.onnx"
    write_whole_graph_onnx(model, path)
    fields = {**model.rule.manifest_fields(), "batch_dependent": model.batch_dependent}
    score = OnnxWholeGraphModel(path, model.rule).score_file
    golden = GoldenRule(whole_batch=model.rule.whole_batch())
    return Exported((path.name,), common_fields(model) | fields, score, golden)
