"""Whole-graph artifacts for the server's tests: papers' architectures, small and untrained.

Their weights are random, so they say nothing of run times; they hold the server to its rule.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from torch.export import Dim

from .export import ArtifactIdentity, digest, manifest
from .featurize import feature_digest, featurize
from .files import write_atomically, write_json
from .golden import GoldenRule, golden_cases, npz_bytes
from .onnx_model import export_module, session
from .schema import TuningData
from .segment_batch import FEATURES, OPCODES
from .whole_graph_model import (
    LAYOUT_VALUES,
    SLOTS,
    TILE_FEATURES,
    WholeGraphModel,
    WholeGraphSettings,
)

_GRAPH_INPUTS = ("opcode", "features", "edges")
_LAYOUTS = "layout_*.pb"
_TILES = "tile_kernels.pb"


@dataclass(frozen=True)
class WholeGraphFixture:
    """One artifact: its name, its model, and how many configurations the model takes at a time."""

    name: str
    settings: WholeGraphSettings
    architecture: str
    chunk_configs: int = 5
    seed: int = 1


FIXTURES = (
    WholeGraphFixture("layout-whole-graph", WholeGraphSettings("layout"), "graphsage-early-join"),
    WholeGraphFixture(
        "layout-cross-configuration",
        WholeGraphSettings("layout", cross_configuration=True),
        "graphsage-cross-configuration",
    ),
    WholeGraphFixture("tile-whole-graph", WholeGraphSettings("tile"), "graphsage-early-join"),
)


def write_whole_graph_fixtures(measured: Path, hlorank: Path, out: Path) -> list[Path]:
    """Write every fixture as version 1; its graphs are those in ``measured``."""
    with TemporaryDirectory() as folder:
        features = {
            "layout": _features(hlorank, sorted(measured.glob(_LAYOUTS)), Path(folder)),
            "tile": _features(hlorank, [measured / _TILES], Path(folder)),
        }
        return [
            _write(fixture, features[fixture.settings.task], feature_digest(hlorank), out)
            for fixture in FIXTURES
        ]


def _features(hlorank: Path, files: Sequence[Path], folder: Path) -> list[Path]:
    modules: list[tuple[Path, int | None]] = []
    for file in files:
        tiles = file.name == _TILES
        count = len(TuningData.FromString(file.read_bytes()).modules) if tiles else 0
        modules += [(file, number) for number in range(count)] or [(file, None)]
    outputs = [folder / f"{file.stem}-{number or 0}.npz" for file, number in modules]
    featurize(hlorank, modules, outputs)
    return outputs


def _write(
    fixture: WholeGraphFixture, features: Sequence[Path], digest_of_features: str, out: Path
) -> Path:
    folder = out / fixture.name / "1"
    (folder / "manifest.json").unlink(missing_ok=True)
    write_whole_graph_onnx(untrained(fixture, features), folder / "model.onnx")
    model = OnnxWholeGraphModel(folder / "model.onnx", fixture.chunk_configs)
    write_atomically(
        folder / "golden.npz", npz_bytes(golden_cases(features, model.score_file, GoldenRule()))
    )
    kind = {
        "task": fixture.settings.task,
        "architecture": fixture.architecture,
        "kind": "graph",
        "chunk_configs": fixture.chunk_configs,
        "batch_dependent": fixture.settings.cross_configuration,
    }
    # No data trained it: the digest is that of nothing.
    identity = ArtifactIdentity(fixture.name, 1, digest_of_features, digest([]))
    files = ("model.onnx", "golden.npz")
    write_json(folder / "manifest.json", manifest(folder, files, identity, kind, quality={}))
    return folder


def untrained(fixture: WholeGraphFixture, features: Sequence[Path]) -> WholeGraphModel:
    """The model with seeded random weights, standardised by the rows of ``features``."""
    torch.manual_seed(fixture.seed)
    model = WholeGraphModel(fixture.settings).eval()
    model.standardise.fit(_rows(features, "node_feat"))
    if fixture.settings.task == "tile":
        model.configuration.standardise.fit(_rows(features, "config_feat"))
    return model


def _rows(features: Sequence[Path], key: str) -> torch.Tensor:
    arrays = []
    for path in features:
        with np.load(path) as file:
            arrays.append(file[key])
    return torch.from_numpy(np.concatenate(arrays))


def inputs(task: str) -> tuple[str, ...]:
    """The inputs of ``model.onnx`` in order."""
    return (
        (*_GRAPH_INPUTS, "configurable", "config")
        if task == "layout"
        else (
            *_GRAPH_INPUTS,
            "config",
        )
    )


def write_whole_graph_onnx(model: WholeGraphModel, path: Path) -> None:
    """Write ``model.onnx`` with its weights inside."""
    task = model.settings.task
    example, dimensions = _example(task), _dimensions(task)
    export_module(model, example, inputs(task), "score", dimensions, path)


def _example(task: str) -> tuple:
    nodes, edges, slots, configs = 5, 6, 3, 4
    layouts = torch.randint(-1, LAYOUT_VALUES - 1, (configs, slots, SLOTS))
    configuration = (
        (torch.arange(slots), layouts)
        if task == "layout"
        else (torch.rand(configs, TILE_FEATURES),)
    )
    return (
        torch.randint(0, OPCODES, (nodes,)),
        torch.rand(nodes, FEATURES),
        torch.randint(0, nodes, (2, edges)),
        configuration,
    )


def _dimensions(task: str) -> tuple:
    nodes, edges, slots, configs = Dim("N"), Dim("E"), Dim("K"), Dim("C")
    layout = ({0: slots}, {0: configs, 1: slots})
    return ({0: nodes}, {0: nodes}, {1: edges}, layout if task == "layout" else ({0: configs},))


class OnnxWholeGraphModel:
    """The exported model, run by ONNX Runtime on one thread, chunk by chunk as the server does."""

    def __init__(self, path: Path, chunk_configs: int):
        self._session = session(path)
        self._chunk_configs = chunk_configs

    def score_file(self, path: Path, chosen: np.ndarray) -> np.ndarray:
        """Scores f32 [c] of the ``chosen`` configurations of a file of features."""
        with np.load(path) as arrays:
            graph = {
                "opcode": arrays["node_opcode"].astype(np.int64),
                "features": arrays["node_feat"],
                "edges": np.ascontiguousarray(arrays["edge_index"].T),
            }
            if "config_feat" in arrays.files:
                return self.score(graph, arrays["config_feat"][chosen])
            graph["configurable"] = arrays["node_config_ids"].astype(np.int64)
            return self.score(graph, arrays["node_config_feat"][chosen].astype(np.int64))

    def score(self, graph: dict[str, np.ndarray], config: np.ndarray) -> np.ndarray:
        """Scores f32 [C] of the configurations in the order given, a chunk at a time."""
        starts = range(0, len(config), self._chunk_configs)
        chunks = [config[start : start + self._chunk_configs] for start in starts]
        return np.concatenate(
            [self._session.run(None, {**graph, "config": chunk})[0] for chunk in chunks]
        )
