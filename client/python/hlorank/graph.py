"""Graphs as a client holds them."""

from collections.abc import Iterable
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hlorank.features import feature_message
from hlorank.messages import WireGraph
from hlorank.route import route_key
from hlorank.task import Task, task_number


class Graph:
    """The bytes of one graph, and the hash to send in their place once a server told it.

    ``configurable_nodes`` gives the node of each slot of a layout; empty, it is every convolution,
    dot and reshape, ascending. ``Client.put_graph`` tells which those are.
    """

    def __init__(
        self,
        source: dict[str, Any],
        route_parts: Iterable[bytes],
        task: Task,
        configurable_nodes: Iterable[int] = (),
    ):
        """Takes one field of ``Graph.source``; use the ``from_`` methods instead."""
        self._whole = WireGraph(
            **source, task=task_number(task), configurable_nodes=configurable_nodes
        )
        self._route_parts = tuple(route_parts)
        self._hash: bytes | None = None
        self.task: Task = task

    @classmethod
    def from_lowered(
        cls, lowered: Any, *, task: Task = "layout", configurable_nodes: Iterable[int] = ()
    ) -> "Graph":
        """What ``jax.jit(function).lower(...)`` gave, as XLA takes it before any optimization."""
        module = lowered.compiler_ir("hlo").as_serialized_hlo_module_proto()
        return cls.from_hlo_proto(module, task=task, configurable_nodes=configurable_nodes)

    @classmethod
    def from_hlo_proto(
        cls, module: bytes, *, task: Task = "layout", configurable_nodes: Iterable[int] = ()
    ) -> "Graph":
        """A serialized ``HloModuleProto`` or ``HloProto``."""
        return cls({"hlo_module": module}, [module], task, configurable_nodes)

    @classmethod
    def from_hlo_text(
        cls, text: str, *, task: Task = "layout", configurable_nodes: Iterable[int] = ()
    ) -> "Graph":
        """HLO text, as XLA prints it and JAX's ``as_hlo_text()``; StableHLO is another language."""
        return cls({"hlo_text": text}, [text.encode()], task, configurable_nodes)

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
        """TpuGraphs' arrays: opcodes [n], features [n, 140], edges [m, 2] (consumer, producer)."""
        features = feature_message(
            np.asarray(node_opcode), np.asarray(node_feat), np.asarray(edge_index)
        )
        edges = np.array(features.edge_index, "<u4").tobytes()
        parts = [features.node_opcode, features.node_feat, edges]
        return cls({"features": features}, parts, task, configurable_nodes)

    @classmethod
    def from_file(
        cls, path: str | PathLike[str], *, module: int = 0, task: Task = "layout"
    ) -> "Graph":
        """The graph of a file that ``read_graphs`` reads; ``module`` picks one of several.

        ``task`` is that of a file without configurations.
        """
        from hlorank.files import read_graph  # which makes graphs

        return read_graph(path, module=module, task=task).graph

    @property
    def hash(self) -> bytes | None:
        """The 32 bytes of the graph hash, once a server told it."""
        return self._hash

    @cached_property
    def route(self) -> str:
        """What a balancer routes by: 64 hexadecimal digits, the same for the same bytes."""
        return route_key(self._route_parts)

    def learn(self, graph_hash: bytes) -> None:
        """Keeps the hash that a server told."""
        self._hash = graph_hash

    def whole(self) -> Any:
        """The ``Graph`` message of the graph itself."""
        return self._whole

    def by_hash(self) -> Any:
        """The ``Graph`` message of the hash; None where it is not known."""
        return WireGraph(graph_hash=self._hash) if self._hash else None
