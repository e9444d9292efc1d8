"""Writes the encoder and the head as ONNX, and runs them as the server does."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from hlorank.measure.atomic_files import write_atomically
from onnx.helper import make_node
from torch.export import Dim

from hlorank_training.data.batch import INPUTS, Batch
from hlorank_training.data.batch import score as score_batch
from hlorank_training.models.layout_part import SLOTS
from hlorank_training.models.segment_batch import FEATURES
from hlorank_training.models.segment_model import SegmentModel
from hlorank_training.models.tile_part import TILE_FEATURES

OPSET = 23


def write_onnx(model: SegmentModel, folder: Path) -> None:
    """Writes ``encoder.onnx`` and ``head.onnx``, which contain their weights."""
    encoder, head = model.encoder.eval(), model.head.eval()
    export_module(
        encoder,
        _example(model.settings.task),
        INPUTS,
        "embedding",
        _dimensions(model.settings.task),
        folder / "encoder.onnx",
    )
    rows = torch.randn(3, model.embedding)
    export_module(head, (rows,), ("sum",), "score", ({0: Dim("C")},), folder / "head.onnx")


def export_module(module, example, inputs, output: str, dimensions, path: Path) -> None:
    """Writes one module as ONNX with named inputs and output, and variable ``dimensions``."""
    program = torch.onnx.export(
        module,
        example,
        input_names=list(inputs),
        output_names=[output],
        dynamic_shapes=dimensions,
        opset_version=OPSET,
        dynamo=True,
        verbose=False,
    )
    exported = program.model_proto
    if getattr(module, "broadcasts_a_lone_segment", False):
        _broadcast_a_lone_segment(exported)
    _strip(exported)
    onnx.checker.check_model(exported)
    write_atomically(path, exported.SerializeToString())


def _broadcast_a_lone_segment(model: onnx.ModelProto) -> None:
    """Broadcasts a single segment to all rows instead of copying it.

    Gathers by ``segment[:end]``, where ``end`` is 1 for a single segment and beyond B for several.
    """
    for node in model.graph.node:
        if node.op_type != "Shape":
            node.input[:] = ["rows" if name == "segment" else name for name in node.input]
    constants = {"zero": [0], "one": [1], "many": [2**31]}
    for name, value in constants.items():
        model.graph.initializer.append(
            onnx.numpy_helper.from_array(np.array(value), f"segment_{name}")
        )
    nodes = [
        make_node("Shape", ["mask"], ["segments"], start=0, end=1),
        make_node("Sub", ["segments", "segment_one"], ["further_segments"]),
        make_node("Mul", ["further_segments", "segment_many"], ["further_rows"]),
        make_node("Add", ["further_rows", "segment_one"], ["rows_end"]),
        make_node("Slice", ["segment", "segment_zero", "rows_end"], ["rows"]),
    ]
    nodes.extend(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    del model.graph.value_info[:]  # the shapes that the exporter inferred are no longer valid


def _strip(model: onnx.ModelProto) -> None:
    """Removes the exporter's notes about the source code, so that a file has only the model."""
    del model.metadata_props[:]
    model.doc_string = model.graph.doc_string = ""
    for part in (
        *model.graph.node,
        *model.graph.value_info,
        *model.graph.input,
        *model.graph.output,
    ):
        part.doc_string = ""
        del part.metadata_props[:]
    for tensor in model.graph.initializer:
        del tensor.metadata_props[:]
    del model.graph.metadata_props[:]


def _example(task: str) -> tuple[torch.Tensor, ...]:
    segments, nodes, rows = 3, 5, 7
    layout = task == "layout"
    config = (
        torch.randint(-2, 6, (rows, nodes, SLOTS)) if layout else torch.rand(rows, TILE_FEATURES)
    )
    return (
        torch.randint(0, 120, (segments, nodes)),
        torch.rand(segments, nodes, FEATURES),
        (torch.rand(segments, nodes, nodes) > 0.5).float(),
        torch.ones(segments, nodes),
        torch.randint(0, segments, (rows,)),
        config,
    )


def _dimensions(task: str) -> tuple[dict[int, Dim], ...]:
    segments, nodes, rows = Dim("S"), Dim("N"), Dim("B")
    config = {0: rows, 1: nodes} if task == "layout" else {0: rows}
    static = {0: segments, 1: nodes}
    return (static, static, {**static, 2: nodes}, static, {0: rows}, config)


class OnnxModel:
    """The exported pair, run by ONNX Runtime on one thread."""

    def __init__(self, folder: Path):
        self._encoder = session(folder / "encoder.onnx")
        self._head = session(folder / "head.onnx")

    def score(self, batch: Batch) -> np.ndarray:
        """Encodes rows, sums embeddings and applies the head; returns scores f32 [c]."""
        return score_batch(batch, self.encode, self.head)

    def encode(self, inputs: Sequence[np.ndarray]) -> np.ndarray:
        """Returns embeddings f32 [B, D] of the encoder's six inputs."""
        return self._encoder.run(None, dict(zip(INPUTS, inputs, strict=True)))[0]

    def head(self, total: np.ndarray) -> np.ndarray:
        """Returns scores f32 [C] of summed embeddings f32 [C, D]."""
        return self._head.run(None, {"sum": total})[0]


def session(path: Path) -> onnxruntime.InferenceSession:
    """Opens a session with one thread, like the server's sessions."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
