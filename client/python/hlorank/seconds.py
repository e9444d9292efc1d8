"""Conversion of protobuf's durations and timestamps."""

from datetime import UTC, datetime, timedelta
from typing import Any

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def seconds(duration: Any) -> float:
    """Converts a ``Duration`` to seconds."""
    return duration.seconds + duration.nanos * 1e-9


def time_of(timestamp: Any) -> datetime:
    """Converts a ``Timestamp`` to a time in UTC."""
    return _EPOCH + timedelta(seconds=timestamp.seconds, microseconds=timestamp.nanos // 1000)
