"""Writes the artifact of a trained model: ONNX files, golden cases, and at last the manifest."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from hlorank_tune.measure.atomic_files import write_atomically, write_json
from torch import nn

from hlorank_training.data.batch import BUCKETS, make_batch
from hlorank_training.models.segment_model import SegmentModel
from hlorank_training.models.train import score_graph
from hlorank_training.shipping.calibration import ScoredList, prior, write_calibration
from hlorank_training.shipping.golden import GoldenRule, Score, golden_cases, npz_bytes
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
    targets: Sequence[dict[str, Any]] = ()
    """What the run times were measured on; empty if that is unknown."""


@dataclass(frozen=True)
class GraphFiles:
    """Graphs that the model did not learn from, in files that ``hlorank graph features`` wrote."""

    test: Sequence[Path]
    """They check the export, and the first are golden cases."""
    validation: Sequence[Path] = ()
    """They say how far a ranking can be trusted, and how much run times rise with scores."""


@dataclass(frozen=True)
class Exported:
    """The ONNX files of a model."""

    files: tuple[str, ...]
    fields: dict[str, Any]
    """The fields of the manifest that the model defines."""
    score: Score
    """Scores as the server does, by ONNX Runtime on one thread."""
    golden: GoldenRule


Write = Callable[[Any, Path], Exported]
"""Writes the ONNX files of a model into a folder."""


def export(
    folder: Path,
    model: nn.Module,
    write: Write,
    identity: ArtifactIdentity,
    graphs: GraphFiles,
    quality: dict[str, Any],
) -> None:
    """Writes the artifact, and checks it."""
    (folder / "manifest.json").unlink(missing_ok=True)
    exported = write(model, folder)
    refuse_if_different(model, exported.score, graphs.test)
    write_artifact(folder, exported, identity, graphs, quality)


def write_segment_model(model: SegmentModel, folder: Path) -> Exported:
    """Writes the encoder and the head."""
    files = write_onnx(model, folder)
    onnx_model = OnnxModel(folder)

    read = model.form(model.settings).read

    def score(path: Path, chosen: np.ndarray) -> np.ndarray:
        return onnx_model.score(make_batch([read(path, path.stem)], [chosen]))

    fields = {"embedding_size": model.embedding, "buckets": list(BUCKETS), "batch_dependent": False}
    return Exported(files, common_fields(model) | fields, score, GoldenRule())


def common_fields(model: nn.Module) -> dict[str, Any]:
    """Returns the fields of the manifest that models of both kinds define."""
    return {
        "task": model.settings.task,
        "architecture": model.architecture,
        "kind": model.kind,
        "pad_value": model.form(model.settings).pad_value,
    }


def write_artifact(
    folder: Path,
    exported: Exported,
    identity: ArtifactIdentity,
    graphs: GraphFiles,
    quality: dict[str, Any],
) -> None:
    """Writes what belongs to the ONNX files in ``folder``, the manifest last."""
    golden = npz_bytes(golden_cases(graphs.test, exported.score, exported.golden))
    write_atomically(folder / "golden.npz", golden)
    lists = [ScoredList.of(path, exported.score) for path in graphs.validation]
    files = (*exported.files, "golden.npz", *write_calibration(folder, lists))
    # Without lists, the server expects little of the scores.
    measured = {"prior": prior([(one.scores, one.run_times) for one in lists])} if lists else {}
    fields = exported.fields | measured
    write_json(folder / "manifest.json", manifest(folder, files, identity, fields, quality))


def refuse_if_different(model: nn.Module, exported: Score, features: Sequence[Path]) -> None:
    """Raises if the exported model scores a graph differently from the trained model."""
    read = model.form(model.settings).read
    for path in features:
        graph = read(path, path.stem)
        expected = score_graph(model, graph)
        actual = exported(path, np.arange(len(graph.runtimes)))
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
    fields: dict[str, Any],
    quality: dict[str, Any],
) -> dict[str, Any]:
    """Returns the manifest of the ``files`` in ``folder``; ``fields`` are the model's own."""
    return {
        "schema": 1,
        "name": identity.name,
        "version": identity.version,
        **fields,
        **({"targets": list(identity.targets)} if identity.targets else {}),
        "feature_digest": identity.feature_digest,
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
