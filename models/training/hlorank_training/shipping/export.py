"""Writes the artifact of a trained model: ONNX files, golden cases, and at last the manifest."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from hlorank.measure.atomic_files import write_atomically, write_json

from hlorank_training.data.batch import BUCKETS, make_batch
from hlorank_training.data.dataset import Graph, read_graph
from hlorank_training.data.featurize import PAD_VALUE
from hlorank_training.models.segment_model import SegmentModel
from hlorank_training.models.train import score_graph
from hlorank_training.shipping.golden import GoldenRule, golden_cases, npz_bytes
from hlorank_training.shipping.onnx_model import OnnxModel, write_onnx

TOLERANCE = 1e-5
"""Maximum difference between ONNX Runtime and torch, relative to the scores' scale."""


@dataclass(frozen=True)
class ArtifactIdentity:
    """The fields of the manifest that the model itself does not define."""

    name: str
    version: int
    feature_digest: str
    training_data_digest: str


def export(
    folder: Path,
    model: SegmentModel,
    identity: ArtifactIdentity,
    features: Sequence[Path],
    graphs: Sequence[Graph],
    quality: dict[str, Any],
) -> None:
    """Writes the artifact.

    Golden cases are chosen from ``features``; ``graphs`` are used to check the export.
    """
    (folder / "manifest.json").unlink(missing_ok=True)
    write_onnx(model, folder)
    onnx_model = OnnxModel(folder)
    refuse_if_different(model, onnx_model, graphs)

    def score(path: Path, chosen: np.ndarray) -> np.ndarray:
        return onnx_model.score(make_batch([read_graph(path, path.stem)], [chosen]))

    golden = npz_bytes(golden_cases(features, score, GoldenRule()))
    write_atomically(folder / "golden.npz", golden)
    kind = {
        "task": model.settings.task,
        "architecture": model.architecture,
        "kind": model.kind,
        "embedding_size": model.embedding,
        "buckets": list(BUCKETS),
        "batch_dependent": False,
    }
    files = ("encoder.onnx", "head.onnx", "golden.npz")
    write_json(folder / "manifest.json", manifest(folder, files, identity, kind, quality))


def refuse_if_different(
    model: SegmentModel, onnx_model: OnnxModel, graphs: Sequence[Graph]
) -> None:
    """Raises if the exported model scores a graph differently from the trained model."""
    for graph in graphs:
        expected = score_graph(model, graph)
        actual = onnx_model.score(make_batch([graph], [np.arange(len(graph.runtimes))]))
        scale = max(float(np.abs(expected).max()), 1.0)
        difference = float(np.abs(expected - actual).max()) / scale
        if difference > TOLERANCE:
            raise RuntimeError(
                f"scores of ONNX Runtime and torch on '{graph.name}' differ by {difference:.1e}, "
                f"the maximum is {TOLERANCE:.0e} of their scale"
            )


def manifest(
    folder: Path,
    files: Sequence[str],
    identity: ArtifactIdentity,
    kind: dict[str, Any],
    quality: dict[str, Any],
) -> dict[str, Any]:
    """Returns the manifest of the ``files`` in ``folder``; ``kind`` has the model's own fields."""
    return {
        "schema": 1,
        "name": identity.name,
        "version": identity.version,
        **kind,
        "feature_digest": identity.feature_digest,
        "pad_value": PAD_VALUE,
        "files": {name: digest([folder / name]) for name in files},
        "training_data_digest": identity.training_data_digest,
        "measured_quality": quality,
        "licence": "Apache-2.0",
    }


def digest(files: Sequence[Path]) -> str:
    """Returns the SHA-256 in hex over the contents of files, sorted by name."""
    state = sha256()
    for file in sorted(files, key=lambda path: path.name):
        state.update(file.read_bytes())
    return state.hexdigest()
