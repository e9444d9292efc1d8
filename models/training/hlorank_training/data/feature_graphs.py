"""Measured graphs of a named feature set, whatever compiler they come from."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from hlorank_tune.measure.atomic_files import read_json

from hlorank_training.data.prepare import shuffled
from hlorank_training.data.ranking_quality import kendall_tau


@dataclass(frozen=True)
class FeatureGraph:
    """A graph, and the run times of some configurations of it."""

    name: str
    feature_set: str
    node_features: np.ndarray
    """f32 [n, F1], raw"""
    edges: np.ndarray
    """i64 [m, 2], from consumer to producer"""
    config_features: np.ndarray
    """f32 [c, n, F2], raw"""
    nanoseconds: np.ndarray
    """i64 [c]"""
    passes: np.ndarray | None = None
    """f64 [2, c], nanoseconds, if there is a record of both passes"""

    @property
    def noise_ceiling(self) -> float | None:
        """Kendall's tau between the passes; None without a record."""
        return None if self.passes is None else kendall_tau(*self.passes)


COLUMNS = "feature_set.json"
"""File beside the measured graphs, with the names of the columns."""


@dataclass(frozen=True)
class Columns:
    """The names of a feature set's columns, in order."""

    name: str
    node_features: tuple[str, ...]
    config_features: tuple[str, ...]
    products: tuple[tuple[int, ...], ...] = ()
    """Columns of configurations, by their places, whose products are amounts of work too"""


def read_columns(folder: Path, graphs: Sequence[FeatureGraph]) -> Columns:
    """Reads ``feature_set.json`` of the folder that the graphs come from.

    Raises:
        ValueError: if the file is missing or broken, or the graphs have other columns.
    """
    path = folder / COLUMNS
    try:
        content = read_json(path)
        names = tuple(content["config_features"])
        columns = Columns(
            content["name"],
            tuple(content["node_features"]),
            names,
            tuple(tuple(map(names.index, product)) for product in content.get("products", ())),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"'{path}' should have `name`, `node_features` and `config_features`, and may have "
            f"`products` of columns of configurations: {error}"
        ) from error
    named = columns.name, len(columns.node_features), len(columns.config_features)
    if named != _columns(graphs[0]):
        raise ValueError(f"'{path}' has {named}, but the graphs have {_columns(graphs[0])}")
    return columns


def read_feature_graphs(folder: Path) -> list[FeatureGraph]:
    """Reads the npz files of a folder, sorted by name, with their records if there are any.

    Raises:
        ValueError: if a file is not a measured graph, or files differ in their feature set.
    """
    graphs = [_read(path) for path in sorted(folder.glob("*.npz"))]
    if not graphs:
        raise ValueError(f"'{folder}' has no measured graphs: no .npz file")
    first = graphs[0]
    for graph in graphs:
        if _columns(graph) != _columns(first):
            raise ValueError(
                f"'{graph.name}' has {_columns(graph)}, but '{first.name}' has {_columns(first)}: "
                "name, columns of nodes and columns of configurations must agree"
            )
    return graphs


def held_out_folds(graphs: Sequence[FeatureGraph], folds: int) -> list[list[str]]:
    """Divides names into folds by their SHA-256, so that nobody chooses."""
    names = shuffled([graph.name for graph in graphs])
    return [names[fold::folds] for fold in range(min(folds, len(names)))]


def _columns(graph: FeatureGraph) -> tuple[str, int, int]:
    return graph.feature_set, graph.node_features.shape[-1], graph.config_features.shape[-1]


def _read(path: Path) -> FeatureGraph:
    try:
        with np.load(path) as arrays:
            graph = FeatureGraph(
                name=path.stem,
                feature_set=arrays["feature_set"].tobytes().decode(),
                node_features=arrays["node_features"].astype(np.float32),
                edges=arrays["edge_index"].astype(np.int64).reshape(-1, 2),
                config_features=arrays["config_features"].astype(np.float32),
                nanoseconds=arrays["config_runtime"].astype(np.int64),
                passes=_passes(path.with_suffix(".json")),
            )
    except KeyError as error:
        raise ValueError(f"'{path}' is not a measured graph of a feature set: {error}") from error
    if problem := _problem(graph):
        raise ValueError(f"'{path}': {problem}")
    return graph


def _passes(record: Path) -> np.ndarray | None:
    if not record.exists():
        return None
    content = read_json(record)
    return np.array([content["first_pass"], content["second_pass"]], np.float64)


def _problem(graph: FeatureGraph) -> str:
    """Says what is wrong with a graph; empty if nothing is."""
    nodes = len(graph.node_features)
    configs = len(graph.nanoseconds)
    if graph.config_features.shape[:2] != (configs, nodes):
        shape = list(graph.config_features.shape)
        return f"config_features has shape {shape}, expected [{configs}, {nodes}, columns]"
    if len(graph.edges) and not 0 <= graph.edges.min() <= graph.edges.max() < nodes:
        return f"edge_index names nodes that do not exist; there are {nodes}"
    if not (np.isfinite(graph.node_features).all() and np.isfinite(graph.config_features).all()):
        return "a feature is not finite"
    if (graph.nanoseconds <= 0).any():
        return "config_runtime has a value that is not positive"
    return ""
