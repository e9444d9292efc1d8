"""Graphs as a client holds them."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hlorank import arguments
from hlorank.arguments import instance, shown, whole_number
from hlorank.arrays import array_of
from hlorank.errors import GraphFileError
from hlorank.features import described_set
from hlorank.graph_file import file_graph
from hlorank.graph_source import (
    GraphSource,
    feature_graph_source,
    features_source,
    hlo_proto_source,
    hlo_text_source,
)
from hlorank.lowered import module_of_lowered
from hlorank.messages import WireGraph
from hlorank.paths import file_path
from hlorank.route import route_key
from hlorank.task import Task, task_number


class Graph:
    """The content of one graph, and the hash that replaces it once a server has sent that.

    ``configurable_nodes`` gives the node of each slot of a layout. If it is empty, these are all
    convolutions, dots and reshapes, in ascending order; ``Client.put_graph`` returns them.
    """

    def __init__(self, source: GraphSource):
        """Takes the content; use the ``from_`` methods instead."""
        instance(source, GraphSource, "source", "a GraphSource: use a method such as from_file")
        self._whole = WireGraph(
            **source.field,
            task=task_number(source.task),
            configurable_nodes=arguments.whole_numbers_of(
                source.configurable_nodes, "configurable_nodes"
            ),
        )
        self._route_parts = source.route_parts
        self._hash: bytes | None = None
        self.task: Task = source.task

    @classmethod
    def from_lowered(
        cls, lowered: Any, *, task: Task = "layout", configurable_nodes: Iterable[int] = ()
    ) -> "Graph":
        """Takes the result of ``jax.jit(function).lower(...)``: the module before optimization.

        Also takes what ``trace`` returns, the lowered functions of Equinox and Flax,
        ``jax.export.Exported``, and an HLO or StableHLO module in memory.

        Raises:
            ArgumentError: for everything else, such as a compiled function or a function that is
                not lowered; the message says what was given and what to do.
        """
        module = module_of_lowered(lowered)
        return cls.from_hlo_proto(module, task=task, configurable_nodes=configurable_nodes)

    @classmethod
    def from_hlo_proto(
        cls, module: bytes, *, task: Task = "layout", configurable_nodes: Iterable[int] = ()
    ) -> "Graph":
        """Takes a serialized ``HloModuleProto`` or ``HloProto``."""
        expected = "a serialized HloModuleProto; from_hlo_text takes text, from_file takes a path"
        content = arguments.content(module, "module", expected)
        return cls(hlo_proto_source(content, task, configurable_nodes))

    @classmethod
    def from_hlo_text(
        cls, text: str, *, task: Task = "layout", configurable_nodes: Iterable[int] = ()
    ) -> "Graph":
        """Takes HLO text as XLA and JAX's ``as_hlo_text()`` print it; StableHLO is not accepted."""
        expected = "HLO text; from_hlo_proto takes bytes, from_file takes a path"
        content = arguments.text(text, "text", expected)
        return cls(hlo_text_source(content, task, configurable_nodes))

    @classmethod
    def from_features(
        cls,
        node_opcode: ArrayLike,
        node_feat: ArrayLike,
        edge_index: ArrayLike,
        *,
        task: Task,
        configurable_nodes: Iterable[int] = (),
    ) -> "Graph":
        """Takes TpuGraphs' arrays.

        They are opcodes [n], features [n, 140] and edges [m, 2] of (consumer, producer).
        """
        opcodes = _numbers_of(node_opcode, "node_opcode")
        features = _numbers_of(node_feat, "node_feat")
        edges = _numbers_of(edge_index, "edge_index")
        return cls(features_source(opcodes, features, edges, task, configurable_nodes))

    @classmethod
    def from_feature_set(
        cls,
        feature_set: str,
        node_features: ArrayLike | None = None,
        edge_index: ArrayLike = (),
        *,
        node_columns: Sequence[str] = (),
        config_columns: Sequence[str] = (),
        instance: str = "",
    ) -> "Graph":
        """Takes a graph of any compiler.

        Args:
            feature_set: The name of the set.
            node_features: [n, columns]: the columns of the nodes, sent as f32; None for one node
                without columns.
            edge_index: [m, 2]: pairs of (consumer, producer), without cycles.
            node_columns: The names of the columns of a node; only with ``config_columns``.
            config_columns: The names of the columns of a configuration. With them the server needs
                no model of the set: it then answers from measurements. If a model serves, its
                columns must have these names.
            instance: What tells graphs of equal features apart, such as a kernel and its problem
                size; at most 256 bytes. Graphs of different instances share no measurements.

        Raises:
            GraphFileError: if an array or a name is invalid.
        """
        columns = described_set(feature_set, node_columns, config_columns)
        return cls(feature_graph_source(columns, node_features, edge_index, instance))

    @classmethod
    def from_file(
        cls, path: str | PathLike[str], *, module: int = 0, task: Task = "layout"
    ) -> "Graph":
        """Reads the graph with the index ``module`` of a file that ``read_graphs`` reads.

        ``task`` applies if the file does not determine it.

        Raises:
            MissingFileError: if the file does not exist, or cannot be opened.
            GraphFileError: if it has another format or is broken.
        """
        number = whole_number(module, "module")
        task_number(task)
        return cls(file_graph(file_path(path), module=number, task=task).source)

    @property
    def hash(self) -> bytes | None:
        """The 32 bytes of the graph hash; None until a server has sent it."""
        return self._hash

    @cached_property
    def route(self) -> str:
        """The key for load balancers: 64 hexadecimal digits, the same for the same bytes."""
        return route_key(self._route_parts)

    def learn(self, graph_hash: bytes) -> None:
        """Stores the hash that a server sent."""
        self._hash = graph_hash

    def whole(self) -> Any:
        """Returns the ``Graph`` message with the graph itself."""
        return self._whole

    def by_hash(self) -> Any:
        """Returns the ``Graph`` message with the hash; None if the hash is unknown."""
        return WireGraph(graph_hash=self._hash) if self._hash else None


def _numbers_of(values: ArrayLike, what: str) -> np.ndarray:
    """Checks that values are a list or an array of numbers, and returns the array."""
    array = array_of(values, what, GraphFileError)
    if array.ndim == 0:
        raise GraphFileError(f"{what} is {shown(values)}, expected an array")
    if array.size and array.dtype.kind not in "biuf":
        raise GraphFileError(f"{what} has type {array.dtype}, expected numbers")
    return array
