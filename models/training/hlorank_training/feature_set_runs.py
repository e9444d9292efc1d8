"""Trains and exports models of feature sets in one step."""

from pathlib import Path
from typing import Any

from hlorank_training.data.feature_graphs import (
    held_out_folds,
    read_columns,
    read_feature_graphs,
)
from hlorank_training.judging.feature_sets import FOLDS, held_out_quality, train_members
from hlorank_training.measuring.provenance import targets_of
from hlorank_training.runs import Destination
from hlorank_training.shipping.export import ArtifactIdentity, digest
from hlorank_training.shipping.feature_set_artifact import export_feature_set, feature_digest


def train_feature_set_artifact(
    folder: Path, epochs: int, members: int, order: bool, destination: Destination
) -> dict[str, Any]:
    """Trains on three quarters of the graphs, and writes the artifact, whose scores are seconds or
    an ``order``.

    Returns its quality on the other graphs.

    Raises:
        ValueError: if the folder has no or too few graphs.
    """
    graphs = read_feature_graphs(folder)
    columns = read_columns(folder, graphs)
    if len(graphs) < FOLDS:
        raise ValueError(f"{len(graphs)} graphs; a model needs {FOLDS}, one to judge it")
    held_out = held_out_folds(graphs, FOLDS)[0]
    learned = [graph for graph in graphs if graph.name not in held_out]
    judged = [graph for graph in graphs if graph.name in held_out]
    model = train_members(learned, columns.products, epochs, members, order)
    quality = held_out_quality(judged, model.scores)
    if order:
        quality.pop("median_error", None)
    identity = ArtifactIdentity(
        name=destination.name,
        version=destination.version,
        feature_digest=feature_digest(columns),
        training_data_digest=digest([folder / f"{graph.name}.npz" for graph in learned]),
        targets=targets_of([folder / "graph.npz"]),
    )
    export_feature_set(destination.folder, model, identity, columns, judged, quality)
    return quality
