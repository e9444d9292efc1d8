"""Writes modules as ONNX, and opens sessions as the server does."""

from pathlib import Path

import onnx
import onnxruntime
import torch
from hlorank_tune.measure.atomic_files import write_atomically

OPSET = 23


def export_module(module, example, inputs, outputs, dimensions, path: Path) -> None:
    """Writes one module as ONNX with named inputs and outputs, and variable ``dimensions``."""
    program = torch.onnx.export(
        module,
        example,
        input_names=list(inputs),
        output_names=list(outputs),
        dynamic_shapes=dimensions,
        opset_version=OPSET,
        dynamo=True,
        verbose=False,
    )
    exported = program.model_proto
    _strip(exported)
    onnx.checker.check_model(exported)
    write_atomically(path, exported.SerializeToString())


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


def session(path: Path) -> onnxruntime.InferenceSession:
    """Opens a session with one thread, like the server's sessions."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
