"""The models and graphs that a server is started with."""

from pathlib import Path

import numpy as np

from configurations import Configurations
from scoring import Mode, Model
from segments import Graph


class Scorer:
    """Scores configurations of a folder's graphs: ``layout/<hash>.npz``, ``tile/<hash>.npz``."""

    def __init__(self, registry: Path, graphs: Path, mode: Mode, threads: int):
        self._mode: Mode = mode
        self._graphs: dict[bytes, tuple[Model, Graph]] = {}
        for task in ("layout", "tile"):
            model = Model(newest(registry / f"{task}-xla-cpu"), threads)
            for path in sorted((graphs / task).glob("*.npz")):
                self._graphs[bytes.fromhex(path.stem)] = (model, model.read_graph(path))

    def score(self, graph_hash: bytes, configurations: Configurations) -> np.ndarray:
        """Scores f32 [c]; a ``KeyError`` for a graph that is not there."""
        model, graph = self._graphs[graph_hash]
        return model.score(graph, configurations, self._mode)


def newest(model: Path) -> Path:
    """The folder of the highest version of a model."""
    versions = [manifest.parent for manifest in model.glob("*/manifest.json")]
    return max(versions, key=lambda version: int(version.name))
