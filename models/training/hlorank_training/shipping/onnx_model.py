"""Writes the encoder, in one part or two, and the head as ONNX, and runs them like the server."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.export import Dim

from hlorank_training.data.batch import INPUTS, Batch
from hlorank_training.data.batch import score as score_batch
from hlorank_training.models.layout_part import SLOTS
from hlorank_training.models.segment_model import (
    FEATURES,
    LOOP_FEATURES,
    TILE_FEATURES,
    SegmentModel,
    SplitEncoder,
    segment_batch,
)
from hlorank_training.shipping.onnx_files import export_module, session

ENCODER = "encoder.onnx"
HEAD = "head.onnx"
SEGMENT = "segment.onnx"
_SEGMENT_INPUTS = INPUTS[:4]
_CONFIGURATION = ("entries", "config")
_MULTIPLE = 4
"""The numbers of rows, entries and sums are multiples of this, as in the server: ONNX Runtime
rounds elements that do not fill a register differently."""


def write_onnx(model: SegmentModel, folder: Path) -> tuple[str, ...]:
    """Writes ``encoder.onnx`` and ``head.onnx``, and ``segment.onnx`` of an encoder in two parts;
    each contains its weights. Returns their names."""
    encoder = model.encoder.eval()
    head = model.head.eval()
    example = _example(model)
    rows = torch.randn(3, model.embedding)
    export_module(head, (rows,), ("sum",), ("score",), ({0: Dim("C")},), folder / HEAD)
    if isinstance(encoder, SplitEncoder):
        _write_split_encoder(encoder, example, folder)
        return (SEGMENT, ENCODER, HEAD)
    dimensions = _dimensions(model.settings.task)
    export_module(encoder, example, INPUTS, ("embedding",), dimensions, folder / ENCODER)
    return (ENCODER, HEAD)


def _example(model: SegmentModel) -> tuple[Tensor, ...]:
    segments = 3
    nodes = 5
    rows = 7
    width = TILE_FEATURES
    if getattr(model.settings, "loops", False):
        width += LOOP_FEATURES
    layout = model.settings.task == "layout"
    config = torch.randint(-2, 6, (rows, nodes, SLOTS)) if layout else torch.rand(rows, width)
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
        self._split = _OnnxSplitEncoder(folder) if (folder / SEGMENT).exists() else None
        self._encoder = None if self._split else session(folder / ENCODER)
        self._head = session(folder / HEAD)

    def score(self, batch: Batch) -> np.ndarray:
        """Encodes rows, sums embeddings and applies the head; returns scores f32 [c]."""
        return score_batch(batch, self.encode, self.head)

    def encode(self, inputs: Sequence[np.ndarray]) -> np.ndarray:
        """Returns embeddings f32 [B, D] of the encoder's six inputs."""
        *segments, segment, config = inputs
        filled = [*segments, _filled(segment), _filled(config)]
        if self._split:
            embeddings = self._split.encode(filled)
        else:
            embeddings = self._encoder.run(None, dict(zip(INPUTS, filled, strict=True)))[0]
        return embeddings[: len(segment)]

    def head(self, total: np.ndarray) -> np.ndarray:
        """Returns scores f32 [C] of summed embeddings f32 [C, D]."""
        return self._head.run(None, {"sum": _filled(total)})[0][: len(total)]


def _filled(rows: np.ndarray) -> np.ndarray:
    """Repeats the last row up to the multiple."""
    more = (0, -len(rows) % _MULTIPLE)
    return np.pad(rows, [more, *[(0, 0)] * (rows.ndim - 1)], "edge")


class _OfSegments(nn.Module):
    def __init__(self, encoder: SplitEncoder):
        super().__init__()
        self.encoder = encoder

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        return self.encoder.of_segments(segment_batch(*inputs))


class _OfRows(nn.Module):
    def __init__(self, encoder: SplitEncoder):
        super().__init__()
        self.encoder = encoder
        self.tensors = len(encoder.tensors)

    def forward(self, *inputs: Tensor) -> Tensor:
        configuration = inputs[: -self.tensors]
        tensors = inputs[-self.tensors :]
        return self.encoder.of_rows(tensors, *configuration)


def _write_split_encoder(encoder: SplitEncoder, example: Sequence[Tensor], folder: Path) -> None:
    """Writes both parts, given an example of the six inputs of an encoder.

    ``encoder.onnx`` takes the outputs of ``segment.onnx`` by their names.
    """
    *segments, segment, config = example
    of_segments = _OfSegments(encoder).eval()
    with torch.no_grad():
        tensors = of_segments(*segments)
        larger = of_segments(*_with_more_nodes(segments))
    dimensions = _variable(segments, _with_more_nodes(segments))
    path = folder / SEGMENT
    export_module(
        of_segments, tuple(segments), _SEGMENT_INPUTS, encoder.tensors, (tuple(dimensions),), path
    )
    configuration = encoder.configuration_inputs(config)
    # A tile has as many columns as the model takes; layouts have more nodes or fewer.
    axes = (0,) if config.ndim == 2 else (0, 1)
    dimensions = [dict.fromkeys(axes, Dim.AUTO) for _ in configuration]
    # The exporter takes lengths from the first input that has them, and the configuration has one
    # for each row.
    export_module(
        _OfRows(encoder).eval(),
        (*configuration, *(tensor[segment] for tensor in tensors)),
        (*_CONFIGURATION[-len(configuration) :], *encoder.tensors),
        ("embedding",),
        ((*dimensions, *_variable(tensors, larger)),),
        folder / ENCODER,
    )


def _with_more_nodes(segments: Sequence[Tensor]) -> list[Tensor]:
    opcode, features, operands, mask = segments
    return [
        opcode.repeat(1, 2),
        features.repeat(1, 2, 1),
        operands.repeat(1, 2, 2),
        mask.repeat(1, 2),
    ]


def _variable(tensors: Sequence[Tensor], larger: Sequence[Tensor]) -> list[dict[int, Dim]]:
    """Returns the axes of each tensor whose length depends on the batch or on the nodes."""
    return [
        {axis: Dim.AUTO for axis in range(a.ndim) if axis == 0 or a.shape[axis] != b.shape[axis]}
        for a, b in zip(tensors, larger, strict=True)
    ]


class _OnnxSplitEncoder:
    """Both parts, run by ONNX Runtime as the server does."""

    def __init__(self, folder: Path):
        self._segment = session(folder / SEGMENT)
        self._encoder = session(folder / ENCODER)
        self._tensors = [output.name for output in self._segment.get_outputs()]

    def encode(self, inputs: Sequence[np.ndarray]) -> np.ndarray:
        """Returns embeddings f32 [B, D] of the six inputs of an encoder."""
        *segments, segment, config = inputs
        tensors = self._segment.run(
            self._tensors, dict(zip(_SEGMENT_INPUTS, segments, strict=True))
        )
        if len(segments[0]) > 1:
            tensors = [tensor[segment] for tensor in tensors]
        given = dict(zip(self._tensors, tensors, strict=True)) | _configuration(config)
        return self._encoder.run(None, given)[0]


def _configuration(config: np.ndarray) -> dict[str, np.ndarray]:
    """Returns tiles as they are, and layouts as their distinct entries and the number of each
    node's."""
    if config.ndim == 2:
        return {"config": config}
    rows, nodes, values = config.shape
    entries, numbers = np.unique(config.reshape(-1, values), axis=0, return_inverse=True)
    return {"entries": _filled(entries), "config": numbers.reshape(rows, nodes)}
