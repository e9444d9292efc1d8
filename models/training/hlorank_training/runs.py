"""Trains, judges and exports models of layouts and tiles; a run has a folder of its own."""

from dataclasses import asdict, dataclass, replace
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


def export_run(files: TuningFiles, run: Path, destination: Destination) -> None:
    """Writes the artifact of a run."""
    report = read_json(run / REPORT)
    model = load_checkpoint(run / CHECKPOINT, REGISTRY)
    prepared = files.prepare(model.form(model.settings))
    refuse_other_features(report, prepared)
    prepared = replace(prepared, split=Split(**report["split"]))
    identity = ArtifactIdentity(
        name=destination.name,
        version=destination.version,
        feature_digest=prepared.feature_digest,
        training_data_digest=digest([prepared.sources[name].file for name in prepared.split.train]),
        targets=targets_of([source.file for source in prepared.sources.values()]),
    )
    graphs = GraphFiles(
        test=[prepared.features[name] for name in prepared.split.test],
        validation=[prepared.features[name] for name in prepared.split.validation],
    )
    write = write_segment_model if model.kind == "segment" else write_whole_graph_model
    export(destination.folder, model, write, identity, graphs, report["measured_quality"])


def refuse_other_features(report: dict[str, Any], prepared: Prepared) -> None:
    """Refuses features of another featurizer, on which the model's scores would be wrong."""
    trained_with = report.get("feature_digest", "unknown")
    if trained_with != prepared.feature_digest:
        raise RuntimeError(
            f"the model was trained with featurizer {trained_with}, but this program has "
            f"{prepared.feature_digest}; train again"
        )
