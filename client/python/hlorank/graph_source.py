"""The content of a graph as a client sends it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hlorank.errors import AnswerError
from hlorank.features import feature_graph_message, feature_message
from hlorank.model import FeatureSet
from hlorank.task import Task, task_of


@dataclass(frozen=True)
class GraphSource:
    """One field of the wire's ``Graph.source``, and what belongs to it."""

    field: dict[str, Any]
    """Name and value of the field."""
    route_parts: tuple[bytes, ...]
    """The bytes that the route key is derived from."""
    task: Task
    configurable_nodes: Iterable[int] = ()
    """The node of each layout slot; if empty, the server finds the configurable nodes."""


def hlo_proto_source(module: bytes, task: Task, nodes: Iterable[int] = ()) -> GraphSource:
    """Returns the source of a serialized ``HloModuleProto`` or ``HloProto``."""
    return GraphSource({"hlo_module": module}, (module,), task, nodes)


def hlo_text_source(text: str, task: Task, nodes: Iterable[int] = ()) -> GraphSource:
    """Returns the source of HLO text."""
    return GraphSource({"hlo_text": text}, (text.encode(),), task, nodes)


def features_source(
    node_opcode: ArrayLike,
    node_feat: ArrayLike,
    edge_index: ArrayLike,
    task: Task,
    nodes: Iterable[int] = (),
) -> GraphSource:
    """Returns the source of TpuGraphs' arrays: opcodes [n], features [n, 140], edges [m, 2]."""
    features = feature_message(
        np.asarray(node_opcode), np.asarray(node_feat), np.asarray(edge_index)
    )
    return GraphSource({"features": features}, _features_parts(features), task, nodes)


def _features_parts(features: Any) -> tuple[bytes, ...]:
    return features.node_opcode, features.node_feat, _edge_bytes(features.edge_index)


def feature_graph_source(
    feature_set: FeatureSet,
    node_features: ArrayLike | None,
    edge_index: ArrayLike,
    instance: str = "",
) -> GraphSource:
    """Returns the source of a graph of a feature set: columns [n, columns], and edges [m, 2]."""
    graph = feature_graph_message(feature_set, node_features, edge_index, instance)
    return GraphSource({"feature_graph": graph}, _feature_graph_parts(graph), "feature-set")


def _feature_graph_parts(graph: Any) -> tuple[bytes, ...]:
    parts = graph.feature_set.encode(), graph.node_features, _edge_bytes(graph.edges)
    return (*parts, graph.instance.encode()) if graph.instance else parts


def _edge_bytes(edges: Iterable[int]) -> bytes:
    return np.array(edges, "<u4").tobytes()


def wire_source(graph: Any) -> GraphSource:
    """Returns the source of a ``Graph`` message from a server. Raises AnswerError without one."""
    task = task_of(graph.task)
    if task is None:
        raise AnswerError(f"the server sent a graph of the unknown task {graph.task}")
    match form := graph.WhichOneof("source"):
        case "hlo_module":
            return hlo_proto_source(graph.hlo_module, task, graph.configurable_nodes)
        case "features":
            parts = _features_parts(graph.features)
            return GraphSource({form: graph.features}, parts, task, graph.configurable_nodes)
        case "feature_graph":
            parts = _feature_graph_parts(graph.feature_graph)
            return GraphSource({form: graph.feature_graph}, parts, task)
    raise AnswerError(f"the server sent a graph in the form {form}")
