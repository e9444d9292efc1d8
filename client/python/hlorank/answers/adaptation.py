"""What learned scores rest on, and how far a ranking can be trusted."""

from dataclasses import dataclass
from typing import Literal, TypeVar

from google.protobuf.message import Message

from hlorank.wire import messages
from hlorank.wire.words import word

Evidence = Literal["model", "measurements", "other_kernels", "other_targets"]
"""What scores may rest on."""
EVIDENCE: tuple[Evidence, ...] = ("model", "measurements", "other_kernels", "other_targets")

T = TypeVar("T")


@dataclass(frozen=True)
class Adaptation:
    """What adapted scores rest on."""

    target: str
    measured_configs: int
    """Distinct configurations that have a time; fewer than 3 teach nothing"""
    adapted: bool
    """Whether scores are predicted logarithms of seconds; otherwise they are the model's"""
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
    reporters: "tuple[Reporter, ...]"
    """Whose measurements it rests on: this client first, then those with the most"""
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
    """Why it is not used: ``too_few_measurements``, ``unlike_others`` or ``contradicted``; empty if
    it is"""


@dataclass(frozen=True)
class Reporter:
    """What one reporter measured of the graph on the target."""

    reporter: str
    """A token's name or an address; empty if it is another client and the token lacks ``admin``"""
    measured_configs: int
    """Distinct configurations of it that have a time"""
    shared_configs: int
    """How many of these other reporters measured, too"""
    times_differ_by: float
    """By what factor its times of these differ from others', as a median; 0 if none is shared"""


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
    """Why they are not used: ``too_few_kernels``, ``no_better_than_model`` or
    ``no_better_than_chance``; empty if they are"""


@dataclass(frozen=True)
class Confidence:
    """How far a ranking can be trusted."""

    unknown_opcodes: int
    """Nodes of the graph whose opcodes the server does not know, and the models did not learn"""
    expected_tau: float | None = None
    """Kendall's tau of the ranking and the run times, as expected; None if nothing tells it"""
    expected_tau_low: float | None = None
    """The lower end of an interval that holds the tau of four of five lists"""
    expected_tau_high: float | None = None


def adaptation_of(message: messages.Adaptation) -> Adaptation:
    """Converts an ``Adaptation`` message."""
    found = [word(messages.Evidence, each) for each in message.rests_on]
    return _of(
        Adaptation,
        message,
        pool=_of(Pool, message.pool, refusal=word(messages.PoolRefusal, message.pool.refusal))
        if message.HasField("pool")
        else None,
        reporters=tuple(_of(Reporter, each) for each in message.reporters),
        sources=tuple(
            _of(TargetSource, each, refusal=word(messages.SourceRefusal, each.refusal))
            for each in message.sources
        ),
        # A newer server may rest on what this client has no word for.
        rests_on=tuple(each for each in EVIDENCE if each in found),
    )


def confidence_of(message: messages.Confidence) -> Confidence:
    """Converts a ``Confidence`` message."""
    return _of(Confidence, message)


def _of(kind: type[T], message: Message, **converted: object) -> T:
    """Copies the fields that have the same form in the message, and takes the converted ones.

    A field that the message can leave out, and does, is None.
    """
    # The stubs do not say which fields have presence; the descriptors do.
    known = message.DESCRIPTOR.fields_by_name
    same = [name for name in kind.__annotations__ if name not in converted]
    unset = [name for name in same if known[name].has_presence and not message.HasField(name)]
    copied = {name: None if name in unset else getattr(message, name) for name in same}
    return kind(**copied, **converted)
