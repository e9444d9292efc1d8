"""Graphs: the content that is sent once, and the hash that replaces it."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
from blake3 import blake3
from numpy.typing import ArrayLike

from hlorank.checks import arguments
from hlorank.checks.arguments import instance
from hlorank.checks.errors import AnswerError
from hlorank.checks.files import file_content
from hlorank.graphs.features import (
    Instance,
    feature_graph_message,
    feature_message,
    instance_of,
)
from hlorank.graphs.lowered import module_of_lowered
from hlorank.wire.messages import Graph as GraphMessage
from hlorank.wire.words import Task, task_of, task_value

ROUTE_HEADER = "x-hlorank-route"
"""Equal for all calls about one graph, so that they reach the replica that has it cached."""

_ROUTE_PURPOSE = "hlorank 2026-11 route key"
_WHITE_SPACE = "\t\n\v\f\r"


class Graph:
    """The content of one graph, and the hash that replaces it once a server has sent that.

    Make one with a method such as ``from_lowered``. ``configurable_nodes`` gives the node of each
    slot of a layout. If it is empty, these are all convolutions, dots and reshapes, in ascending
    order; ``Client.put_graph`` returns them.
    """

    def __init__(self, message: GraphMessage):
        """Takes the message as a server sends it; use the ``from_`` methods instead.

        Raises:
            AnswerError: if it has no content, or an unknown task.
        """
        instance(
            message, GraphMessage, "message", "a Graph message: use a method such as from_file"
        )
        task = task_of(message.task)
        if task is None:
            raise AnswerError(f"the server sent a graph of the unknown task {message.task}")
        # One message for all calls: protobuf copies it into a request in C.
        self._whole = message
        self._hash: bytes | None = None
        self.task: Task = task
        self._route_parts = _route_parts(message)

    @classmethod
    def from_lowered(
        cls, lowered: object, *, task: Task = "layout", configurable_nodes: Iterable[int] = ()
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
        return cls._of(task, configurable_nodes, hlo_module=content)

    @classmethod
    def from_hlo_text(
        cls, text: str, *, task: Task = "layout", configurable_nodes: Iterable[int] = ()
    ) -> "Graph":
        """Takes HLO text as XLA and JAX's ``as_hlo_text()`` print it; StableHLO is not accepted."""
        expected = "HLO text; from_hlo_proto takes bytes, from_file takes a path"
        content = arguments.text(text, "text", expected)
        return cls._of(task, configurable_nodes, hlo_text=content)

    @classmethod
    def from_features(
        cls,
        node_opcode: ArrayLike,
        node_feat: ArrayLike,
        edge_index: ArrayLike,
        *,
        task: Task,
        configurable_nodes: Iterable[int] = (),
        operands: ArrayLike = (),
    ) -> "Graph":
        """Takes TpuGraphs' arrays.

        They are opcodes [n], features [n, 140] and edges [m, 2] of (consumer, producer), and for a
        kernel the ``operands`` [k] that ``hlorank graph features`` writes.
        """
        features = feature_message(node_opcode, node_feat, edge_index, operands)
        return cls._of(task, configurable_nodes, features=features)

    @classmethod
    def from_feature_set(
        cls,
        feature_set: str,
        node_features: ArrayLike | None = None,
        edge_index: ArrayLike = (),
        *,
        node_columns: Sequence[str] = (),
        config_columns: Sequence[str] = (),
        instance: Instance = "",
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
            instance: What tells graphs of equal columns apart. A mapping of at most 32 names to
                numbers or texts of at most 64 bytes, such as the sizes of a problem, describes a
                graph of one node: a server learns from measurements of other instances, too. Text
                of at most 256 bytes is a name alone, of which nothing is learned.

        Raises:
            GraphFileError: if an array has other axes, or a number cannot be sent.
            ArgumentError: if something has another type. The server refuses the rest.
        """
        graph = feature_graph_message(
            feature_set, node_features, edge_index, node_columns, config_columns, instance
        )
        return cls._of("feature-set", (), feature_graph=graph)

    @classmethod
    def from_file(
        cls,
        path: str | PathLike[str],
        *,
        task: Task = "layout",
        configurable_nodes: Iterable[int] = (),
    ) -> "Graph":
        """Sends a file as it is: HLO text, or a serialized ``HloModuleProto`` or ``HloProto``.

        The server reads it, and says what else a file is that it cannot read.

        Raises:
            MissingFileError: if the file does not exist, or cannot be opened.
        """
        content = file_content(path)
        if _is_text(content):
            text = content.decode()
            return cls.from_hlo_text(text, task=task, configurable_nodes=configurable_nodes)
        return cls.from_hlo_proto(content, task=task, configurable_nodes=configurable_nodes)

    @classmethod
    def _of(cls, task: Task, configurable_nodes: Iterable[int], **source: Any) -> "Graph":
        nodes = arguments.whole_numbers_of(configurable_nodes, "configurable_nodes")
        return cls(GraphMessage(task=task_value(task), configurable_nodes=nodes, **source))

    @property
    def hash(self) -> bytes | None:
        """The 32 bytes of the graph hash; None until a server has sent it."""
        return self._hash

    @cached_property
    def route(self) -> str:
        """The key for load balancers: 64 hexadecimal digits, the same for the same bytes."""
        parts = (len(part).to_bytes(8, "little") + part for part in self._route_parts)
        return blake3(b"".join(parts), derive_key_context=_ROUTE_PURPOSE).hexdigest()

    @property
    def instance(self) -> Instance:
        """What tells a graph of a feature set from others of its columns; empty for others."""
        return instance_of(self._whole.feature_graph)

    def learn(self, graph_hash: bytes) -> None:
        """Stores the hash that a server sent."""
        self._hash = graph_hash

    def whole(self) -> GraphMessage:
        """Returns the message with the graph itself."""
        return self._whole

    def by_hash(self) -> GraphMessage | None:
        """Returns the message with the hash; None if the hash is unknown."""
        return GraphMessage(graph_hash=self._hash) if self._hash else None

    def __repr__(self) -> str:
        known = self._hash.hex()[:12] if self._hash else "not sent yet"
        form = (self._whole.WhichOneof("source") or "").replace("_", " ")
        return f"Graph({form} of {self._whole.ByteSize():,} bytes, task={self.task!r}, {known})"


def _is_text(content: bytes) -> bool:
    """Returns whether bytes are UTF-8 without control characters, which every message has."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return False
    return all(letter >= " " or letter in _WHITE_SPACE for letter in set(text))


def _route_parts(message: GraphMessage) -> tuple[bytes, ...]:
    """Returns the bytes that the route key is derived from. Raises AnswerError without a graph."""
    match form := message.WhichOneof("source"):
        case "hlo_module":
            return (message.hlo_module,)
        case "hlo_text":
            return (message.hlo_text.encode(),)
        case "features":
            features = message.features
            return features.node_opcode, features.node_feat, _edge_bytes(features.edge_index)
        case "feature_graph":
            # An empty instance is left out, so that routes are those of clients that know none. Its
            # features are left out on purpose: one replica learns from all instances of a space.
            graph = message.feature_graph
            parts = graph.feature_set.encode(), graph.node_features, _edge_bytes(graph.edges)
            return (*parts, graph.instance.encode()) if graph.instance else parts
    raise AnswerError(f"the server sent a graph in the form {form}")


def _edge_bytes(edges: Iterable[int]) -> bytes:
    return np.array(edges, "<u4").tobytes()
