"""Writes the artifact of a model of a feature set: ONNX file, golden cases, and the manifest."""

from collections.abc import Sequence
from json import dumps
from pathlib import Path
from typing import Any

import numpy as np
import torch
from blake3 import blake3
from torch import Tensor, nn
from torch.export import Dim

from hlorank_training.data.feature_graphs import Columns, FeatureGraph
from hlorank_training.models.feature_set_model import FeatureBatch, FeatureSetEnsemble
from hlorank_training.models.graph_layers import adjacency
from hlorank_training.shipping.calibration import prior
from hlorank_training.shipping.export import (
    ArtifactIdentity,
    begin_artifact,
    refuse_difference,
    write_manifest,
)
from hlorank_training.shipping.golden import GOLDEN, write_golden
from hlorank_training.shipping.onnx_files import export_module, session

TOLERANCE = 1e-4
"""Maximum difference between ONNX Runtime and torch, relative to the largest score of a graph."""
CHUNK_CONFIGS = 64
"""Configurations that the server evaluates at a time."""
_INPUTS = ("features", "edges", "config")
_GOLDEN_GRAPHS = 3
_GOLDEN_CONFIGS = 8
_MILLISECOND = 1e-3


class ServedModel(nn.Module):
    """The model as the server calls it: one graph, and some configurations of it."""

    def __init__(self, model: FeatureSetEnsemble):
        super().__init__()
        self.model = model

    def forward(self, features: Tensor, edges: Tensor, config: Tensor) -> Tensor:
        """Maps features f32 [N,F1], edges i64 [2,E] and config f32 [C,N,F2] to scores f32 [C]:
        seconds, except for models of the order alone."""
        one = features.new_ones(1, features.shape[0])
        relations = adjacency(edges, features.shape[0]).unsqueeze(0)
        batch = FeatureBatch(features.unsqueeze(0), config, relations, one, ())
        scores = self.model(batch)
        return scores if self.model.settings.order else torch.exp(scores) * _MILLISECOND


def export_feature_set(
    folder: Path,
    model: FeatureSetEnsemble,
    identity: ArtifactIdentity,
    columns: Columns,
    held_out: Sequence[FeatureGraph],
    quality: dict[str, Any],
) -> None:
    """Writes the artifact; the export is checked on the held-out graphs.

    Raises:
        RuntimeError: if the exported model scores differently.
    """
    begin_artifact(folder)
    _write_onnx(model.eval(), folder / "model.onnx")
    served = session(folder / "model.onnx")
    for graph in held_out:
        arrays = _arrays(graph)
        with torch.no_grad():
            expected = ServedModel(model)(*map(torch.from_numpy, arrays.values())).numpy()
        difference = np.abs(served.run(None, arrays)[0] - expected).max() / np.abs(expected).max()
        refuse_difference(f"scores of '{graph.name}'", difference, TOLERANCE)
    write_golden(folder, _golden(served, held_out))
    fields = {
        "task": "feature-set",
        "architecture": model.architecture,
        "kind": "graph",
        "chunk_configs": CHUNK_CONFIGS,
        "batch_dependent": False,
        "feature_set": {
            "name": columns.name,
            "node_features": list(columns.node_features),
            "config_features": list(columns.config_features),
        },
    }
    if model.settings.order:
        scored = ((np.log(model.scores(graph)), graph.nanoseconds) for graph in held_out)
        fields["prior"] = prior([*scored])
    else:
        fields["unit"] = "seconds"
    write_manifest(folder, ("model.onnx", GOLDEN), identity, fields, quality)


def feature_digest(columns: Columns) -> str:
    """Returns BLAKE3 in hex of the name and the columns, as the server computes it."""
    written = [columns.name, list(columns.node_features), list(columns.config_features)]
    return blake3(dumps(written, separators=(",", ":")).encode()).hexdigest()


def _write_onnx(model: FeatureSetEnsemble, path: Path) -> None:
    settings = model.settings
    nodes = 5
    edges = 6
    configs = 3
    example = (
        torch.rand(nodes, settings.node_columns),
        torch.randint(0, nodes, (2, edges)),
        torch.rand(configs, nodes, settings.config_columns),
    )
    size = Dim("N")
    dimensions = ({0: size}, {1: Dim("E")}, {0: Dim("C"), 1: size})
    export_module(ServedModel(model).eval(), example, _INPUTS, ("score",), dimensions, path)


def _arrays(graph: FeatureGraph) -> dict[str, np.ndarray]:
    """Returns the inputs of ``model.onnx``."""
    edges = np.ascontiguousarray(graph.edges.T)
    given = (graph.node_features, edges, graph.config_features)
    return dict(zip(_INPUTS, given, strict=True))


def _golden(served: Any, graphs: Sequence[FeatureGraph]) -> dict[str, np.ndarray]:
    """Returns arrays by ``CASE/KEY``."""
    arrays: dict[str, np.ndarray] = {}
    for case, graph in enumerate(graphs[:_GOLDEN_GRAPHS]):
        inputs = _arrays(graph)
        inputs["config"] = inputs["config"][:_GOLDEN_CONFIGS]
        golden = {
            "feature_set": np.frombuffer(graph.feature_set.encode(), np.uint8),
            "node_features": graph.node_features,
            "edge_index": graph.edges,
            "config_features": inputs["config"],
            "score": served.run(None, inputs)[0],
        }
        arrays |= {f"{case}/{key}": value for key, value in golden.items()}
    return arrays
