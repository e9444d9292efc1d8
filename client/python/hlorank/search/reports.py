"""What is measured, and what becomes of it at a server that keeps measurements."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from hlorank.adapt import Adapt
from hlorank.client import Client
from hlorank.errors import HlorankError, RefusedError
from hlorank.graph import Graph

T = TypeVar("T")

TIMEOUT = 30.0
"""Deadline of a call in seconds."""
_REPORTED = 10_000
"""Maximum number of measurements of a report."""


@dataclass(frozen=True)
class Result:
    """The outcome of one measurement."""

    seconds: float = 0.0
    """0 if it failed."""
    failure: str | None = None
    """One of ``hlorank.adapt.FAILURES``; None if it has a time, or if the harness failed."""

    @property
    def is_measurement(self) -> bool:
        """Whether this says something of the candidate; a failure of the harness does not."""
        return self.seconds > 0 or self.failure is not None


@dataclass
class Kept:
    """What the server keeps of the measurements of a search."""

    target: str
    """What they were measured on."""
    measurements: int = 0
    problem: str = ""
    """Why the last report was not kept; empty if it was."""
    is_off: bool = False
    """Whether the server has no store."""

    def __str__(self) -> str:
        """Says in a line what became of the measurements; empty if a server keeps none."""
        if self.problem and not self.is_off:
            return f"not all measurements are kept for later searches: {self.problem}"
        if not self.measurements:
            return ""
        return f"{self.measurements} measurements are kept for later searches on '{self.target}'"


class Reports:
    """Reports the measurements of one graph, each of them once."""

    def __init__(self, client: Client, graph: Graph):
        self._client = client
        self._graph = graph
        self._reported = 0

    def send(
        self,
        kept: Kept,
        measured: Sequence[T],
        adapt: Callable[[Sequence[T]], Adapt],
    ) -> None:
        """Reports the measurements that the server does not keep yet.

        A report that fails is repeated with the next one; ``kept`` says why it failed. A server
        without a store is not asked again.

        Args:
            kept: Counts what is kept.
            measured: All measurements, in the order of earlier calls.
            adapt: Converts measurements to a message.
        """
        new = measured[self._reported : self._reported + _REPORTED]
        if not new or kept.is_off:
            return
        try:
            answer = self._client.report_measurements(self._graph, adapt(new), timeout=TIMEOUT)
        except HlorankError as error:
            reason = error.reason if isinstance(error, RefusedError) else ""
            kept.is_off = reason == "MEASUREMENTS_OFF"
            kept.problem = str(error)
            return
        kept.problem = ""
        kept.measurements += answer.accepted + answer.known
        self._reported += len(new)
