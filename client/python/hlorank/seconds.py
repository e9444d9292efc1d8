"""Durations and points in time as protobuf has them."""

from datetime import UTC, datetime, timedelta
from typing import Any

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def seconds(duration: Any) -> float:
    """The seconds of a ``Duration``."""
    return duration.seconds + duration.nanos * 1e-9


def time_of(timestamp: Any) -> datetime:
    """The time, in UTC, of a ``Timestamp``."""
    return _EPOCH + timedelta(seconds=timestamp.seconds, microseconds=timestamp.nanos // 1000)
