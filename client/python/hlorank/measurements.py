"""Measurements that a server keeps for later calls."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hlorank.adapt import FAILURES, Adapt
from hlorank.arguments import content, text
from hlorank.config_features import ConfigFeatures
from hlorank.configurations import Configurations
from hlorank.errors import AnswerError, ArgumentError
from hlorank.fusions import Fusions, from_delta
from hlorank.layouts import Layouts
from hlorank.messages import (
    DeleteMeasurementsRequest,
    ListMeasurementsRequest,
    PackedLayoutConfigs,
    ReportMeasurementsRequest,
)
from hlorank.tiles import Tiles


@dataclass(frozen=True)
class Reported:
    """What came of a report. All of its measurements are on the server's disk."""

    accepted: int
    """Number of measurements that are new."""
    known: int
    """Number of measurements that were reported before."""
    graph_hash: bytes


@dataclass(frozen=True, eq=False)
class GraphMeasurements:
    """Measurements of one graph on one target."""

    target: str
    graph_hash: bytes
    configurations: Configurations
    """What was measured, one configuration for each measurement."""
    seconds: np.ndarray
    """f64 [measurements]: mean run time of each; 0 if it failed"""
    repeats: np.ndarray
    """i64 [measurements]: number of runs of each"""
    failures: tuple[str | None, ...]
    """How each failed: one of ``FAILURES``, or None"""
    ids: tuple[bytes, ...]
    """What tells each from the others of its configuration and reporter"""
    reporters: tuple[str, ...] = ()
    """Who reported each: a token's name or an address. Empty text if it is not known, or if it is
    another client and the token lacks ``admin``; no texts from an older server."""


@dataclass(frozen=True)
class MeasurementsPage:
    """A part of the measurements that a server keeps."""

    graphs: tuple[GraphMeasurements, ...]
    """By target, graph hash and configuration"""
    next: bytes
    """What to pass as ``after`` for the next page; empty if this is the last one."""


_HASH_HINT = "a graph has its hash once a call about it was answered, such as put_graph"


def report_message(source: Any, adapt: Adapt) -> Any:
    """Returns the request that reports the measurements of ``adapt``."""
    message = adapt.message
    return ReportMeasurementsRequest(
        graph=source,
        target=message.target,
        batch=message.batch if message.HasField("batch") else None,
        seconds=message.seconds,
        repeats=message.repeats,
        failures=message.failures,
        ids=message.ids,
    )


def list_message(target: str, graph_hash: bytes, after: bytes) -> Any:
    """Returns the request for a page; an empty hash stands for all graphs."""
    return ListMeasurementsRequest(
        target=text(target, "target"),
        graph_hash=checked_hash(graph_hash),
        page_token=content(after, "after", "the bytes of next of the page before"),
    )


def delete_reporter_message(reporter: str, target: str) -> Any:
    """Returns the request that deletes what a reporter measured; an empty target stands for all."""
    name = text(reporter, "reporter")
    if not name:
        raise ArgumentError("reporter is empty: list_measurements has the reporters")
    return DeleteMeasurementsRequest(reporter=name, target=text(target, "target"))


def delete_message(target: str, graph_hash: bytes) -> Any:
    """Returns the request that deletes the measurements of one graph."""
    found = b"" if graph_hash is None else checked_hash(graph_hash)
    if not found:
        hint = f"{_HASH_HINT}; delete_target deletes the measurements of all graphs"
        raise ArgumentError(f"graph_hash is {graph_hash!r}: {hint}")
    return DeleteMeasurementsRequest(target=text(target, "target"), graph_hash=found)


def checked_hash(graph_hash: Any) -> bytes:
    """Checks that a value is a graph hash, and returns it."""
    if graph_hash is None:
        raise ArgumentError(f"graph_hash is None: {_HASH_HINT}")
    return content(graph_hash, "graph_hash", "the bytes of a graph hash")


def page_of(answer: Any) -> MeasurementsPage:
    """Converts a ``ListMeasurementsResponse``. Raises AnswerError if it is impossible."""
    graphs = tuple(_graph_measurements_of(message) for message in answer.graphs)
    return MeasurementsPage(graphs, answer.next_page_token)


def _graph_measurements_of(message: Any) -> GraphMeasurements:
    configurations = _configurations_of(message.batch)
    lists = message.seconds, message.repeats, message.failures, message.ids
    if message.reporters:
        lists += (message.reporters,)
    if any(len(values) != len(configurations) for values in lists):
        raise AnswerError("the server's measurements have lists of different lengths")
    known = (None, *FAILURES)
    return GraphMeasurements(
        message.target,
        message.graph_hash,
        configurations,
        np.array(message.seconds, np.float64),
        np.array(message.repeats, np.int64),
        tuple(known[each] if each < len(known) else "other" for each in message.failures),
        tuple(message.ids),
        tuple(message.reporters),
    )


def _configurations_of(batch: Any) -> Configurations:
    form = batch.WhichOneof("configs")
    message = getattr(batch, form or "tile_configs")
    try:
        if form == "packed_tile_configs":
            return _packed_tiles(message)
        if form == "tile_configs":
            return _readable_tiles(message)
        if form == "packed_layout_configs":
            return Layouts.from_packed(message)
        if form == "delta_layout_configs":
            return Layouts.from_packed(_packed_layouts(message))
        if form == "packed_fusion_configs":
            return Fusions.from_packed(message)
        if form == "delta_fusion_configs":
            return from_delta(message)
        if form == "node_feature_configs":
            return ConfigFeatures.from_message(message)
    except (ValueError, IndexError) as error:
        raise AnswerError(f"the server's configurations are unreadable: {error}") from error
    raise AnswerError(f"the server sent configurations in the form {form}")


def _packed_tiles(message: Any) -> Tiles:
    counts = message.kernel_bound_count, message.output_bound_count, message.input_bound_count
    bounds = np.frombuffer(message.bounds, "<i4").reshape(message.config_count, sum(counts))
    kernel, output, input_ = np.split(bounds.astype(np.int64), np.cumsum(counts)[:2], axis=1)
    return Tiles(kernel_bounds=kernel, output_bounds=output, input_bounds=input_)


def _readable_tiles(message: Any) -> Tiles:
    return Tiles(
        kernel_bounds=[list(tile.kernel_bounds) for tile in message.configs],
        output_bounds=[list(tile.output_bounds) for tile in message.configs],
        input_bounds=[list(tile.input_bounds) for tile in message.configs],
    )


def _packed_layouts(message: Any) -> Any:
    """Returns the ``PackedLayoutConfigs`` of a ``DeltaLayoutConfigs``."""
    counts = np.array(message.change_counts, np.int64)
    indices = np.tile(np.array(message.base, np.int64), (len(counts), 1))
    configs = np.repeat(np.arange(len(counts)), counts)
    indices[configs, np.array(message.change_slots, np.int64)] = message.change_entries
    largest = max((len(table.entries) // 3 for table in message.tables), default=0)
    return PackedLayoutConfigs(
        config_count=len(counts),
        tables=message.tables,
        indices=indices.astype("u1" if largest <= 256 else "<u2").tobytes(),
    )
