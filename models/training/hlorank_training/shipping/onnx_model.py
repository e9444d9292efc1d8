"""Writes the encoder and the head as ONNX, and runs them as the server does."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch.export import Dim

from hlorank_training.data.batch import INPUTS, Batch
from hlorank_training.data.batch import score as score_batch
from hlorank_training.models.layout_part import SLOTS
from hlorank_training.models.segment_model import FEATURES, SegmentModel, SplitEncoder
from hlorank_training.models.tile_part import TILE_FEATURES
from hlorank_training.shipping.onnx_files import export_module, session
from hlorank_training.shipping.split_encoder import (
    SEGMENT,
    OnnxSplitEncoder,
    write_split_encoder,
)

ENCODER = "encoder.onnx"
HEAD = "head.onnx"


def write_onnx(model: SegmentModel, folder: Path) -> tuple[str, ...]:
    """Writes ``encoder.onnx`` and ``head.onnx``, and ``segment.onnx`` of an encoder in two parts;
    each contains its weights. Returns their names."""
    encoder = model.encoder.eval()
    head = model.head.eval()
    example = _example(model.settings.task)
    rows = torch.randn(3, model.embedding)
    export_module(head, (rows,), ("sum",), ("score",), ({0: Dim("C")},), folder / HEAD)
    if isinstance(encoder, SplitEncoder):
        write_split_encoder(encoder, example, folder)
        return (SEGMENT, ENCODER, HEAD)
    dimensions = _dimensions(model.settings.task)
    export_module(encoder, example, INPUTS, ("embedding",), dimensions, folder / ENCODER)
    return (ENCODER, HEAD)


def _example(task: str) -> tuple[torch.Tensor, ...]:
    segments = 3
    nodes = 5
    rows = 7
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
    segments = Dim("S")
    nodes = Dim("N")
    rows = Dim("B")
    config = {0: rows, 1: nodes} if task == "layout" else {0: rows}
    static = {0: segments, 1: nodes}
    return (static, static, {**static, 2: nodes}, static, {0: rows}, config)


class OnnxModel:
    """The exported pair, run by ONNX Runtime on one thread."""

    def __init__(self, folder: Path):
        self._split = OnnxSplitEncoder(folder) if (folder / SEGMENT).exists() else None
        self._encoder = None if self._split else session(folder / ENCODER)
        self._head = session(folder / HEAD)

    def score(self, batch: Batch) -> np.ndarray:
        """Encodes rows, sums embeddings and applies the head; returns scores f32 [c]."""
        return score_batch(batch, self.encode, self.head)

    def encode(self, inputs: Sequence[np.ndarray]) -> np.ndarray:
        """Returns embeddings f32 [B, D] of the encoder's six inputs."""
        if self._split:
            return self._split.encode(inputs)
        return self._encoder.run(None, dict(zip(INPUTS, inputs, strict=True)))[0]

    def head(self, total: np.ndarray) -> np.ndarray:
        """Returns scores f32 [C] of summed embeddings f32 [C, D]."""
        return self._head.run(None, {"sum": total})[0]
