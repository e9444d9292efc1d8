"""What learned scores rest on, and how far a ranking can be trusted."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Evidence = Literal["model", "measurements", "other_kernels", "other_targets", "other_instances"]
"""What scores may rest on."""
SourceKind = Literal["instances", "kernels", "target", "unknown"]
"""What related measurements are of; ``unknown`` is the word of a newer server."""

_UNKNOWN_VALUE = "INSTANCE_VALUE_UNKNOWN"
"""The reason of a warning that nobody measured an instance with a text that this one has."""


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
    reporters: "tuple[Reporter, ...]"
    """Whose measurements it rests on: this client first, then those with the most"""
    sources: "tuple[RelatedSource, ...]"
    """What each related list or group of lists taught: other instances or kernels, then other
    targets by name; empty without ``use_stored``"""
    rests_on: tuple[Evidence, ...]
    """What scores rest on; empty if the server knows nothing, and then all scores are 0"""


@dataclass(frozen=True)
class RelatedSource:
    """What related measurements taught."""

    kind: SourceKind
    """Other instances of a space, other kernels of one structure, or the graph on another target"""
    target: str
    """The other target; empty for other kinds"""
    lists: int
    """Instances or kernels that have enough measurements; 1 for a target, or 0 if it has too few"""
    measured_configs: int
    """Distinct configurations that were read, at most 300 of a target"""
    used: bool
    """Whether scores rest on them"""
    agreement: float
    """Kendall's tau of known times and of what these measurements predict: the mean over kernels or
    instances that are left out; for a target, the times are those of the call's target if 5
    configurations of it are measured, else this target's, which the others predict"""
    model_tau: float
    """The same of the times of kernels and the model's scores; 0 for other kinds"""
    refusal: str
    """Why they are not used: ``too_few_measurements``, ``unlike_others``, ``contradicted`` or
    ``no_better_than_model``; empty if they are"""

    def __str__(self) -> str:
        what = self.target if self.kind == "target" else f"{self.lists:,} {self.kind}"
        return f"{what}, {self.measured_configs:,} measurements"


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
class Warning:
    """A note that the request is valid but unusual."""

    reason: str
    """Stable code in UPPER_SNAKE_CASE."""
    message: str


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
    expected_slowdown: float | None = None
    """Time of the first configuration over that of the fastest sent, as expected: 1 or more. None
    unless scores rest on other instances, and none of this one is measured"""
    expected_slowdown_p90: float | None = None
    """The same that nine of ten such instances did not exceed"""


def rests_on(
    adaptation: Adaptation | None, confidence: Confidence | None, warnings: Iterable[Warning] = ()
) -> str:
    """Returns what scores rest on as text, and how far the first pick is to be trusted."""
    if adaptation is None or not adaptation.rests_on:
        return ""
    said = [f"{adaptation.measured_configs:,} configurations"] if adaptation.adapted else []
    said += [str(source) for source in adaptation.sources if source.used]
    if confidence is not None and confidence.expected_slowdown is not None:
        first = confidence.expected_slowdown
        most = confidence.expected_slowdown_p90 or first
        said.append(
            f"the first pick is expected {100 * (first - 1):.1f} % above the best, "
            f"nine of ten below {100 * (most - 1):.1f} %"
        )
    said += [warning.message for warning in warnings if warning.reason == _UNKNOWN_VALUE]
    return "; ".join(said)
