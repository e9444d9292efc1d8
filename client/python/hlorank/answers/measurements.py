"""Measurements that a server keeps for later calls."""

from dataclasses import dataclass
from datetime import datetime

import numpy as np

from hlorank.answers.tables import table
from hlorank.checks.arguments import content, instance, wrong
from hlorank.checks.errors import AnswerError, ArgumentError
from hlorank.configurations import Configurations
from hlorank.configurations.received import configurations_of
from hlorank.wire import messages
from hlorank.wire.messages import ListMeasurementsResponse
from hlorank.wire.words import word


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
    reported_at: tuple[int, ...] = ()
    """When each was first reported, in seconds since 1970"""
    machines: tuple[str, ...] = ()
    """What measured each; empty text if it was not named"""

    @property
    def fastest(self) -> float | None:
        """The shortest run time in seconds; None if everything failed."""
        times = self.seconds[self.seconds > 0]
        return float(times.min()) if len(times) else None


@dataclass(frozen=True, repr=False)
class MeasurementsPage:
    """A part of the measurements that a server keeps."""

    graphs: tuple[GraphMeasurements, ...]
    """By target, graph hash and configuration"""
    next: bytes
    """What to pass as ``after`` for the next page; empty if this is the last one."""

    def __repr__(self) -> str:
        title = (
            f"Measurements of {len(self.graphs)} graphs, {'more follow' if self.next else 'all'}"
        )
        rows = (
            (each.target, each.graph_hash.hex()[:12], len(each.seconds), each.fastest)
            for each in self.graphs
        )
        headers = ("target", "graph", "measurements", "fastest seconds")
        return table(title, headers, rows, len(self.graphs))


HASH_HINT = "a graph has its hash once a call about it was answered, such as put_graph"


def checked_hash(graph_hash: bytes | None) -> bytes:
    """Checks that a value is a graph hash, and returns it; an empty one stands for all graphs."""
    if graph_hash is None:
        raise ArgumentError(f"graph_hash is None: {HASH_HINT}")
    return content(graph_hash, "graph_hash", "the bytes of a graph hash")


def checked_time(time: datetime | None) -> int:
    """Checks a time, and returns its seconds since 1970; None is 0, which stands for all times."""
    if time is None:
        return 0
    expected = "a datetime after 1970 with a zone, such as datetime.now(UTC) - timedelta(days=90)"
    checked = instance(time, datetime, "reported_before", expected)
    seconds = 0 if checked.tzinfo is None else int(checked.timestamp())
    if seconds <= 0:
        raise wrong("reported_before", time, expected)
    return seconds


def page_of(answer: ListMeasurementsResponse) -> MeasurementsPage:
    """Converts a ``ListMeasurementsResponse``. Raises AnswerError if it is impossible."""
    graphs = tuple(_graph_measurements_of(message) for message in answer.graphs)
    return MeasurementsPage(graphs, answer.next_page_token)


def _graph_measurements_of(message: messages.GraphMeasurements) -> GraphMeasurements:
    configurations = configurations_of(message.batch)
    lengths = {len(message.seconds), len(message.repeats), len(message.failures), len(message.ids)}
    for optional in (message.reporters, message.reported_at, message.machines):
        if optional:
            lengths.add(len(optional))
    if lengths != {len(configurations)}:
        raise AnswerError("the server's measurements have lists of different lengths")
    failures = (word(messages.MeasurementFailure.DESCRIPTOR, each) for each in message.failures)
    return GraphMeasurements(
        message.target,
        message.graph_hash,
        configurations,
        np.array(message.seconds, np.float64),
        np.array(message.repeats, np.int64),
        tuple(each or None for each in failures),
        tuple(message.ids),
        tuple(message.reporters),
        tuple(message.reported_at),
        tuple(message.machines),
    )
