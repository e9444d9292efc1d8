"""Trains, judges and exports models of layouts and tiles; a run has a folder of its own."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hlorank_tune.measure.atomic_files import read_json, write_json

from hlorank_training.data.prepare import SEGMENTS, Form, Prepared, Split, prepare
from hlorank_training.judging import held_out_quality
from hlorank_training.measuring.provenance import targets_of
from hlorank_training.models.architecture import Architecture, Preset
from hlorank_training.models.checkpoint import load_checkpoint, save_checkpoint
from hlorank_training.models.train import Keeping, score_graph, train
from hlorank_training.registry import REGISTRY
from hlorank_training.shipping.export import (
    ArtifactIdentity,
    GraphFiles,
    digest,
    export,
    write_segment_model,
)
from hlorank_training.whole_graphs.onnx_model import write_whole_graph_model

CHECKPOINT = "checkpoint.pt"
REPORT = "training.json"


@dataclass(frozen=True)
class TuningFiles:
    """The measured graphs of a task, and the program that featurizes them."""

    task: str
    folder: Path
    hlorank: Path

    def prepare(self, form: Form = SEGMENTS) -> Prepared:
        """Featurizes and splits the graphs."""
        return prepare(self.task, self.folder, self.hlorank, form)


def train_run(
    files: TuningFiles, entry: Architecture, preset: Preset, folder: Path
) -> dict[str, Any]:
    """Trains a model, or continues a stopped training; writes checkpoint and report.

    Returns the quality on the held-out graphs.
    """
    prepared = files.prepare(entry.model.form(preset.model))
    training = prepared.graphs(prepared.split.train)
    validation = prepared.graphs(prepared.split.validation)
    keeping = Keeping(
        on_best=lambda model: save_checkpoint(folder / CHECKPOINT, model),
        state=folder / "state.pt",
    )
    trained = train(entry.model, preset, training, validation, keeping)
    quality = held_out_quality(prepared, lambda graph: score_graph(trained.model, graph))
    report = {
        "feature_digest": prepared.feature_digest,
        "architecture": trained.model.architecture,
        "model": asdict(trained.model.settings),
        "settings": asdict(preset.training),
        "split": asdict(prepared.split),
        "history": trained.history,
        **quality,
    }
    write_json(folder / REPORT, report)
    return quality["measured_quality"]


@dataclass(frozen=True)
class Destination:
    """The registry, the name and the version of an artifact."""

    registry: Path
    name: str
    version: int

    @property
    def folder(self) -> Path:
        """Folder of the artifact."""
        return self.registry / self.name / str(self.version)

    def identity(
        self, feature_digest: str, learned: Sequence[Path], measured: Iterable[Path]
    ) -> ArtifactIdentity:
        """Returns what the manifest says of the files that the model learned from, and of the
        folders of all that were measured."""
        targets = targets_of(measured)
        return ArtifactIdentity(self.name, self.version, feature_digest, digest(learned), targets)


def export_run(files: TuningFiles, run: Path, destination: Destination) -> None:
    """Writes the artifact of a run."""
    report = read_json(run / REPORT)
    model = load_checkpoint(run / CHECKPOINT, REGISTRY)
    prepared = files.prepare(model.form(model.settings))
    refuse_other_features(report, prepared.feature_digest)
    split = Split(**report["split"])
    identity = destination.identity(
        prepared.feature_digest,
        [prepared.sources[name].file for name in split.train],
        [source.file for source in prepared.sources.values()],
    )
    graphs = GraphFiles(
        test=[prepared.features[name] for name in split.test],
        validation=[prepared.features[name] for name in split.validation],
    )
    write = write_segment_model if model.kind == "segment" else write_whole_graph_model
    export(destination.folder, model, write, identity, graphs, report["measured_quality"])


def refuse_other_features(report: dict[str, Any], feature_digest: str) -> None:
    """Refuses features of another featurizer, on which the model's scores would be wrong.

    Raises:
        ValueError: if the report has another digest.
    """
    trained_with = report.get("feature_digest", "unknown")
    if trained_with != feature_digest:
        raise ValueError(
            f"the model was trained with featurizer {trained_with}, but this program has "
            f"{feature_digest}; train again"
        )
