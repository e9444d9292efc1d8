"""Writes the artifact of a trained model: ONNX files, golden cases, and at last the manifest."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from hlorank_tune.measure.atomic_files import write_json
from torch import nn

from hlorank_training.data.batch import BUCKETS, make_batch
from hlorank_training.models.segment_model import SegmentModel
from hlorank_training.models.train import score_graph
from hlorank_training.shipping.calibration import ScoredList, prior, write_calibration
from hlorank_training.shipping.golden import GOLDEN, GoldenRule, Score, golden_cases, write_golden
from hlorank_training.shipping.onnx_model import OnnxModel, write_onnx

MANIFEST = "manifest.json"
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
    begin_artifact(folder)
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
    write_golden(folder, golden_cases(graphs.test, exported.score, exported.golden))
    lists = [ScoredList.of(path, exported.score) for path in graphs.validation]
    files = (*exported.files, GOLDEN, *write_calibration(folder, lists))
    # Without lists, the server expects little of the scores.
    measured = {"prior": prior([(one.scores, one.run_times) for one in lists])} if lists else {}
    fields = exported.fields | measured
    write_manifest(folder, files, identity, fields, quality)


def refuse_if_different(model: nn.Module, exported: Score, features: Sequence[Path]) -> None:
    """Raises if the exported model scores a graph differently from the trained model."""
    read = model.form(model.settings).read
    for path in features:
        graph = read(path, path.stem)
        expected = score_graph(model, graph)
        actual = exported(path, np.arange(len(graph.runtimes)))
        scale = max(float(np.abs(expected).max()), 1.0)
        difference = float(np.abs(expected - actual).max()) / scale
        refuse_difference(f"scores of '{graph.name}'", difference, TOLERANCE)


def refuse_difference(what: str, difference: float, tolerance: float) -> None:
    """Raises if ONNX Runtime and torch differ by more, relative to the scale of their numbers."""
    # Not "greater than", since NaN is wrong too.
    if not difference <= tolerance:
        raise RuntimeError(
            f"{what} by ONNX Runtime and by torch differ by {difference:.1e} of their scale, the "
            f"maximum is {tolerance:.0e}"
        )


def begin_artifact(folder: Path) -> None:
    """Removes the manifest, without which a folder is no artifact."""
    (folder / MANIFEST).unlink(missing_ok=True)


def write_manifest(
    folder: Path,
    files: Sequence[str],
    identity: ArtifactIdentity,
    fields: dict[str, Any],
    quality: dict[str, Any],
) -> None:
    """Writes the manifest of the ``files`` in ``folder``; ``fields`` are the model's own."""
    content = {
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
    write_json(folder / MANIFEST, content)


def digest(files: Sequence[Path]) -> str:
    """Returns the SHA-256 in hex over the contents of files, sorted by name."""
    state = sha256()
    for file in sorted(files, key=lambda path: path.name):
        state.update(file.read_bytes())
    return state.hexdigest()
