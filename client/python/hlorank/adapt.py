"""Measured run times from which a server learns for one call, or which it keeps."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hlorank.arguments import (
    content,
    flag,
    instance,
    number,
    one_of,
    several,
    text,
    whole_numbers_of,
)
from hlorank.batch import Batch
from hlorank.configurations import Configurations
from hlorank.messages import Adapt as AdaptMessage
from hlorank.messages import ConfigBatch

FAILURES = ("compile", "crash", "wrong_result", "timeout")
"""What a measurement may fail by, in the order of ``MeasurementFailure``."""

SOURCE_REFUSALS = ("", "too_few_measurements", "unlike_others", "contradicted")
"""Why another target is not used, in the order of ``SourceRefusal``."""

Evidence = Literal["model", "measurements", "other_kernels", "other_targets"]
_EVIDENCE: tuple[Evidence, ...] = ("model", "measurements", "other_kernels", "other_targets")
"""In the order of ``Evidence``, from 1."""

POOL_REFUSALS = ("", "too_few_kernels", "no_better_than_model", "no_better_than_chance")
"""Why a pool is not used, in the order of ``PoolRefusal``."""


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
    """Whether to learn also from what the server keeps of this graph and target."""
    own_only: bool = False
    """With ``use_stored``, whether to read only what this client reported: its token or address."""
    other_targets: Sequence[str] = ()
    """At most 16 targets whose stored measurements of this graph say what to expect on this one.
    They are never mixed with those of ``target``, from which the server learns the difference."""
    all_other_targets: bool = False
    """Whether to use all other targets that have measurements of this graph: 16, by name."""

    def __post_init__(self) -> None:
        """Checks types where the caller passes them."""
        if self.configurations is not None:
            expected = "Layouts, Tiles, Fusions, ConfigFeatures or None"
            instance(self.configurations, Batch, "configurations", expected)
        self._lists()

    def _lists(self) -> dict[str, Any]:
        """Returns the fields of the message except the configurations."""
        times = several(self.seconds, "seconds", "numbers")
        failures = several(self.failures, "failures", "texts")
        ids = several(self.ids, "ids", "bytes")
        others = several(self.other_targets, "other_targets", "names of targets")
        return {
            "target": text(self.target, "target", "the name of what times were measured on"),
            "seconds": [_seconds_of(time, f"seconds[{i}]") for i, time in enumerate(times)],
            "repeats": whole_numbers_of(self.repeats, "repeats"),
            "failures": [_number_of(failure) for failure in failures],
            "ids": [content(one, f"ids[{i}]") for i, one in enumerate(ids)],
            "use_stored": flag(self.use_stored, "use_stored"),
            "own_only": flag(self.own_only, "own_only"),
            "other_targets": [text(name, f"other_targets[{i}]") for i, name in enumerate(others)],
            "all_other_targets": flag(self.all_other_targets, "all_other_targets"),
        }

    @property
    def message(self) -> Any:
        """The message ``Adapt``."""
        message = AdaptMessage(**self._lists())
        if self.configurations is not None:
            form, batch = self.configurations.wire
            message.batch.CopyFrom(ConfigBatch(**{form: batch}))
        return message


@dataclass(frozen=True)
class Adaptation:
    """What adapted scores rest on."""

    target: str
    measured_configs: int
    """Distinct configurations that have a time; fewer than 3 teach nothing"""
    adapted: bool
    """Whether scores are predicted logarithms of seconds; otherwise they are the model's"""
    trust: float
    """Probability that times follow the model's scores here, from 0 to 1"""
    noise: float
    """Standard deviation of the logarithm of the time of one run"""
    leave_one_out_tau: float
    """Kendall's tau of the times and what the other measurements predict for each"""
    zero_shot_tau: float
    """Kendall's tau of the times and the model's scores"""
    stored_measurements: int
    """Stored measurements that were joined with those of the call"""
    learned_configs: int
    """Distinct configurations that taught; see ``Adaptation`` in adaptation.proto"""
    pool: "Pool | None"
    """What other kernels of the same structure taught; None without ``use_stored``"""
    contradictions: "tuple[Contradiction, ...]"
    """The reporters whose measurements contradict those of others"""
    sources: "tuple[TargetSource, ...]"
    """What each other target taught, by name; empty unless the call asked for other targets"""
    rests_on: tuple[Evidence, ...]
    """What scores rest on; empty if the server knows nothing, and then all scores are 0"""


@dataclass(frozen=True)
class TargetSource:
    """What the measurements of the graph on another target taught."""

    target: str
    measured_configs: int
    """Distinct configurations that were read, at most 300"""
    used: bool
    """Whether scores rest on it"""
    agreement: float
    """Kendall's tau of what it predicts and the times that are known: the target's own if at least
    5 configurations of it are measured, else those of the other sources; 0 if there are neither"""
    refusal: str
    """Why it is not used: one of ``SOURCE_REFUSALS``; empty if it is"""


@dataclass(frozen=True)
class Contradiction:
    """A reporter whose measurements contradict those of others."""

    reporter: str
    """A token's name or an address; empty if it is another client and the token lacks ``admin``"""
    measured_configs: int
    agreement: float
    """Mean of Kendall's tau of its times and what each other reporter's measurements predict"""
    left_out: bool
    """Whether others outvote it, so that nothing is learned from it"""


@dataclass(frozen=True)
class Pool:
    """What stored measurements of other kernels of the same structure taught."""

    graphs: int
    """Kernels with at least 3 measured tiles"""
    measured_configs: int
    used: bool
    """Whether scores rest on them: only if they predict each other better than the model does"""
    leave_one_out_tau: float
    """Mean of Kendall's tau of the times and what the other kernels predict"""
    zero_shot_tau: float
    """The same of the times and the model's scores"""
    refusal: str
    """Why they are not used: one of ``POOL_REFUSALS``; empty if they are"""


@dataclass(frozen=True)
class Confidence:
    """How far a ranking can be trusted."""

    model_agreement: float | None
    """Kendall's tau of the scores of two models that learned from the same data; None if there is
    no second one. It does not see hardware that both do not know."""
    other_model: str
    """The second model; empty if there is none"""
    measure_first: int
    """How many of the first configurations to measure"""
    unknown_opcodes: int
    """Nodes of the graph whose opcodes the server does not know, and the models did not learn"""
    expected_tau: float | None = None
    """Kendall's tau of the ranking and the run times, as expected; None if the artifact of the
    model has no calibration and nothing was learned"""
    expected_tau_low: float | None = None
    """The lower end of an interval that holds the tau of four of five lists"""
    expected_tau_high: float | None = None


def adaptation_of(message: Any) -> Adaptation:
    """Converts an ``Adaptation`` message."""
    pool = _pool_of(message.pool) if message.HasField("pool") else None
    contradictions = tuple(
        Contradiction(**_values(each, Contradiction)) for each in message.contradictions
    )
    parts = {
        "pool": pool,
        "contradictions": contradictions,
        "sources": tuple(map(_source_of, message.sources)),
        "rests_on": tuple(_EVIDENCE[each - 1] for each in message.rests_on if _is_known(each)),
    }
    return Adaptation(**_values(message, Adaptation) | parts)


def _is_known(evidence: int) -> bool:
    return 0 < evidence <= len(_EVIDENCE)


def _pool_of(message: Any) -> Pool:
    return Pool(**_values(message, Pool) | {"refusal": _refusal(message.refusal, POOL_REFUSALS)})


def _source_of(message: Any) -> TargetSource:
    refusal = _refusal(message.refusal, SOURCE_REFUSALS)
    return TargetSource(**_values(message, TargetSource) | {"refusal": refusal})


def _refusal(number: int, known: Sequence[str]) -> str:
    return known[number] if number < len(known) else "unknown"


def confidence_of(message: Any) -> Confidence:
    """Converts a ``Confidence`` message."""
    unknown = {} if message.HasField("model_agreement") else {"model_agreement": None}
    return Confidence(**_values(message, Confidence) | unknown)


def _values(
    message: Any, of: type[Adaptation | Contradiction | Pool | TargetSource | Confidence]
) -> dict[str, Any]:
    return {field: getattr(message, field) for field in of.__dataclass_fields__}


def _number_of(failure: str | None) -> int:
    if failure is None:
        return 0
    return 1 + FAILURES.index(one_of(failure, FAILURES, "the failure"))


def _seconds_of(time: Any, what: str) -> float:
    return number(time, what, "seconds, from 1e-12 to 1e9, or 0 if it failed")
