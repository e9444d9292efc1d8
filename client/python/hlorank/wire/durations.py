"""Durations of the wire as seconds."""

from google.protobuf.duration_pb2 import Duration

_NANOSECONDS = 1_000_000_000


def seconds_of(duration: Duration) -> float:
    """Returns the seconds of a duration."""
    return duration.seconds + duration.nanos / _NANOSECONDS


def set_seconds(duration: Duration, seconds: float) -> None:
    """Sets a duration of a message; the classes of messages differ between pools."""
    nanoseconds = round(seconds * _NANOSECONDS)
    duration.seconds, duration.nanos = divmod(nanoseconds, _NANOSECONDS)
