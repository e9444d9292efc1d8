"""Writes the artifact of a model of kernels: ONNX files, golden cases, and at last the manifest."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from hlorank_tune.measure.schema import ModuleTuningData
from torch.export import Dim

from hlorank_training.data.batch import BUCKETS
from hlorank_training.data.kernels import FusedProgram, KernelData, MeasuredKernel
from hlorank_training.data.prepare import PAD_VALUE
from hlorank_training.models.kernel_batch import KERNEL_INPUTS, batches
from hlorank_training.models.kernel_time import KernelTimeModel
from hlorank_training.models.segment_model import FEATURES
from hlorank_training.shipping.export import (
    ArtifactIdentity,
    begin_artifact,
    refuse_difference,
    write_manifest,
)
from hlorank_training.shipping.golden import GOLDEN, write_golden
from hlorank_training.shipping.onnx_files import export_module, session

TOLERANCE = 1e-4
"""Maximum difference between ONNX Runtime and torch, relative to each run time."""
_GOLDEN_CASES = 3
_GOLDEN_CONFIGURATIONS = 8
_GOLDEN_NODES = 150
"""Maximum number of instructions of a golden case's program, so that the file stays small."""


def export_kernel_model(
    folder: Path,
    model: KernelTimeModel,
    identity: ArtifactIdentity,
    data: KernelData,
    held_out: Sequence[str],
    quality: dict[str, Any],
) -> None:
    """Writes the artifact.

    The export is checked on every kernel of the held-out families, and their first programs within
    the limits are the golden cases.

    Raises:
        RuntimeError: if the exported model predicts other seconds, or no program is small enough.
    """
    begin_artifact(folder)
    _write_onnx(model, folder)
    encoder = session(folder / "encoder.onnx")
    kernels = [data.kernels[number] for number in data.unseen(held_out)]
    expected = model.nanoseconds(kernels) * 1e-9
    difference = float(np.max(np.abs(_seconds(encoder, kernels) - expected) / expected))
    refuse_difference("seconds", difference, TOLERANCE)
    programs = [program for program in data.programs if program.family in held_out]
    write_golden(folder, _golden(encoder, data, programs))
    fields = {
        "task": "fusion",
        "architecture": model.architecture,
        "kind": model.kind,
        "unit": "seconds",
        "prior": {"slope": 1.0, "spread": 0.2},
        "pad_value": PAD_VALUE,
        "embedding_size": model.embedding,
        "buckets": list(BUCKETS),
        "batch_dependent": False,
    }
    files = ("encoder.onnx", "head.onnx", GOLDEN)
    write_manifest(folder, files, identity, fields, quality)


def _write_onnx(model: KernelTimeModel, folder: Path) -> None:
    segments = Dim("S")
    rows = Dim("B")
    # Kernels are halved twice, so that the exporter has to know that halves are whole.
    nodes = 4 * Dim("quarter")
    static = {0: segments, 1: nodes}
    example = (
        torch.randint(0, 120, (3, 8)),
        torch.rand(3, 8, FEATURES),
        (torch.rand(3, 8, 8) > 0.5).float().tril(-1),
        torch.ones(3, 8),
        torch.randint(0, 3, (7,)),
    )
    dimensions = (static, static, {**static, 2: nodes}, static, {0: rows})
    encoder = model.encoder.eval()
    path = folder / "encoder.onnx"
    export_module(encoder, example, KERNEL_INPUTS, ("embedding",), dimensions, path)
    head = model.head.eval()
    sums = (torch.rand(3, 1),)
    export_module(head, sums, ("sum",), ("score",), ({0: Dim("C")},), folder / "head.onnx")


def _seconds(encoder: Any, kernels: Sequence[MeasuredKernel]) -> np.ndarray:
    """Returns the seconds of kernels as the server computes them: f32 [k]."""
    seconds = np.zeros(len(kernels), np.float32)
    for batch in batches(kernels):
        tensors = (batch.opcode, batch.features, batch.operands, batch.mask)
        arrays = [tensor.numpy() for tensor in tensors]
        given = [*arrays, np.arange(len(batch.numbers))]
        inputs = {node.name for node in encoder.get_inputs()}
        named = {n: a for n, a in zip(KERNEL_INPUTS, given, strict=True) if n in inputs}
        seconds[batch.numbers] = encoder.run(None, named)[0][:, 0]
    return seconds


def _golden(
    encoder: Any, data: KernelData, programs: Sequence[FusedProgram]
) -> dict[str, np.ndarray]:
    """Returns arrays by ``CASE/KEY``."""
    arrays: dict[str, np.ndarray] = {}
    for program in programs:
        tuning = ModuleTuningData.FromString(program.file.read_bytes())
        nodes = sum(len(computation.instructions) for computation in tuning.module.computations)
        runs = program.runs[:_GOLDEN_CONFIGURATIONS]
        if nodes > _GOLDEN_NODES or len(runs) < len(tuning.runs[:_GOLDEN_CONFIGURATIONS]):
            continue
        used, places = np.unique(np.concatenate(runs), return_inverse=True)
        seconds = _seconds(encoder, [data.kernels[number] for number in used])
        ends = np.cumsum([len(run) for run in runs])
        sums = [part.sum() for part in np.split(seconds[places].astype(np.float64), ends[:-1])]
        bits = [run.module_config.fusion_config.fused for run in tuning.runs[: len(runs)]]
        case = len(arrays) // 3
        module = tuning.module.SerializeToString(deterministic=True)
        arrays[f"{case}/hlo_module"] = np.frombuffer(module, np.uint8)
        arrays[f"{case}/fused"] = np.stack([np.frombuffer(each, np.uint8) for each in bits])
        arrays[f"{case}/score"] = np.array(sums, np.float32)
        if case + 1 == _GOLDEN_CASES:
            break
    if not arrays:
        raise RuntimeError("no held-out program is small enough for a golden case")
    return arrays
