"""Traces of searches: recorded calls, which ``hlorank bench --trace`` replays.

A trace is a file of ``hlorank.v1.TraceRecord`` messages, each preceded by its length as a varint.
"""

from pathlib import Path
from time import monotonic_ns
from typing import Any

from hlorank import Adapt, Configurations, Graph
from hlorank.answers.models import model_reference
from hlorank.wire.messages import RankConfigsRequest, TraceRecord

_SECOND = 1_000_000_000


class Trace:
    """Writes the calls about one graph with their start times."""

    def __init__(self, path: Path, graph: Graph):
        """Creates the file; raises a FileExistsError if it exists."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("xb")
        self._begin = monotonic_ns()
        self._put(TraceRecord(graph=graph.whole()))

    def write(
        self,
        configurations: Configurations,
        *,
        top_k: int = 0,
        model: str | None = None,
        with_scores: bool = False,
        adapt: Adapt | None = None,
    ) -> None:
        """Appends a call that starts now, with the arguments of ``Client.rank``."""
        selector = None if model is None else model_reference(model).selector()
        request = RankConfigsRequest(model=selector, top_k=top_k, include_scores=with_scores)
        request.MergeFromString(configurations.serialized)
        if adapt is not None:
            request.adapt.CopyFrom(adapt.message)
        seconds, nanos = divmod(monotonic_ns() - self._begin, _SECOND)
        at = {"seconds": seconds, "nanos": nanos}
        self._put(TraceRecord(call={"at": at, "graph": 0, "request": request}))

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def _put(self, record: Any) -> None:
        message = record.SerializeToString()
        # Flushed, so that the trace of a killed search is complete up to its end.
        self._file.write(_varint(len(message)) + message)
        self._file.flush()


def _varint(number: int) -> bytes:
    """Encodes a varint: seven bits per byte, the lowest first; the eighth bit marks more bytes."""
    parts = []
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*parts, number])
