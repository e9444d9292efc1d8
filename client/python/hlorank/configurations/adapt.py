"""Measured run times from which a server learns for one call, or which it keeps."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from hlorank.checks.arguments import (
    content,
    flag,
    instance,
    number,
    one_of,
    several,
    text,
    whole_number,
    whole_numbers_of,
    wrong,
)
from hlorank.configurations import Configurations
from hlorank.configurations.batch import Batch
from hlorank.wire import messages
from hlorank.wire.words import value_of

FAILURES = ("compile", "crash", "wrong_result", "timeout", "invalid")
"""What a measurement may fail by."""
SHORTEST, LONGEST = 1e-12, 1e9
"""Run times in seconds that a server keeps."""
_SECONDS = "seconds, from 1e-12 to 1e9, or 0 if it failed"


@dataclass(frozen=True)
class Result:
    """The outcome of one measurement."""

    seconds: float = 0.0
    """0 if it failed."""
    failure: str | None = None
    """One of ``FAILURES``; None if it has a time, or if the harness failed."""
    repeats: int = 1
    """Number of runs that the time is the mean of."""
    lease: bytes = b""
    """By which a worker had the right to measure it; its report ends the lease."""

    def __post_init__(self) -> None:
        """Refuses what a server would refuse later, together with what is reported beside it."""
        time = number(self.seconds, "seconds", _SECONDS)
        if time != 0 and not SHORTEST <= time <= LONGEST:
            raise wrong("seconds", self.seconds, _SECONDS)
        if self.failure is not None:
            one_of(self.failure, FAILURES, "the failure")
        whole_number(self.repeats, "repeats", 1, 1_000_000)
        content(self.lease, "lease")

    @property
    def is_measurement(self) -> bool:
        """Whether this says something of the candidate; a failure of the harness does not."""
        return self.seconds > 0 or self.failure is not None


@dataclass(frozen=True, eq=False)
class Adapt:
    """Measured configurations of a graph.

    The types are checked here. The server checks the numbers, and rejects lists of different
    lengths.

    Raises:
        ArgumentError: if a field has another type, or a failure is unknown.
    """

    target: str
    """What times were measured on: hardware, compiler and flags. Never mix targets."""
    configurations: Configurations | None = None
    """What was measured, at most 2,000 to learn from and 10,000 to keep; None for nothing."""
    seconds: Sequence[float] = ()
    """Mean run time of each in seconds, from 1e-12 to 1e9; 0 if it failed"""
    repeats: Sequence[int] = ()
    """Number of runs of each; empty for 1 each"""
    failures: Sequence[str | None] = ()
    """One of ``FAILURES`` or None for each; empty if none failed"""
    ids: Sequence[bytes] = ()
    """What tells each from others of its configuration, 1 to 64 bytes; empty: its outcome"""
    use_stored: bool = False
    """Whether to learn also from what the server keeps of this graph on the target, and of related
    ones: other instances of a space, and other kernels of one structure."""
    own_only: bool = False
    """With ``use_stored``, whether to read only what this client reported: its token or address."""
    other_targets: Sequence[str] = ()
    """At most 16 targets whose stored measurements of this graph say what to expect on this one.
    They are never mixed with those of ``target``, from which the server learns the difference; of
    an instance with features, its other instances on these targets count a tenth."""
    all_other_targets: bool = False
    """Whether to use all other targets that have measurements of this graph: 16, by name."""

    def __post_init__(self) -> None:
        """Checks types where the caller passes them."""
        if self.configurations is not None:
            expected = "Layouts, Tiles, Fusions, ConfigFeatures or None"
            instance(self.configurations, Batch, "configurations", expected)
        _ = self.message

    @cached_property
    def message(self) -> messages.Adapt:
        """The message, which is built once and never changed."""
        times = several(self.seconds, "seconds", "numbers")
        failures = several(self.failures, "failures", "texts")
        ids = several(self.ids, "ids", "bytes")
        others = several(self.other_targets, "other_targets", "names of targets")
        return messages.Adapt(
            target=text(self.target, "target", "the name of what times were measured on"),
            batch=None if self.configurations is None else self.configurations.wire,
            seconds=[number(time, f"seconds[{i}]", _SECONDS) for i, time in enumerate(times)],
            repeats=whole_numbers_of(self.repeats, "repeats"),
            failures=[_failure_of(failure) for failure in failures],
            ids=[content(one, f"ids[{i}]") for i, one in enumerate(ids)],
            use_stored=flag(self.use_stored, "use_stored"),
            own_only=flag(self.own_only, "own_only"),
            other_targets=[text(name, f"other_targets[{i}]") for i, name in enumerate(others)],
            all_other_targets=flag(self.all_other_targets, "all_other_targets"),
        )


def _failure_of(failure: str | None) -> messages.MeasurementFailure.ValueType:
    if failure is None:
        return messages.MeasurementFailure.MEASUREMENT_FAILURE_UNSPECIFIED
    return value_of(messages.MeasurementFailure, one_of(failure, FAILURES, "the failure"))
