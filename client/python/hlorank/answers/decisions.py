"""Decisions: what everybody uses for a key on a target."""

from dataclasses import asdict, dataclass, field
from typing import Literal

from hlorank.answers.converted import converted
from hlorank.answers.tables import table
from hlorank.checks.arguments import content, number, text, whole_number
from hlorank.checks.errors import AnswerError
from hlorank.wire import messages
from hlorank.wire.durations import seconds_of

DecisionState = Literal["decided", "claimed", "held", "undecided"]


@dataclass(frozen=True)
class DecisionKey:
    """What is decided.

    Raises:
        ArgumentError: if a field has another type.
    """

    namespace: str
    """Whose keys they are: ``space``, ``helion``, ``triton``, ``inductor``, ``kernel-tuner``,
    ``tvm``, ``optuna`` or ``xla``"""
    key: bytes
    """1 to 256 bytes: the key of the tuner, or the hash of the graph"""
    target: str
    """The target, in parts such as ``device=NVIDIA H100 PCIe;triton=3.9.0`` in any order, or any
    text; at most 256 bytes"""

    def __post_init__(self) -> None:
        """Checks what the caller passed."""
        text(self.namespace, "namespace")
        content(self.key, "key")
        text(self.target, "target")

    def message(self) -> messages.DecisionKey:
        """Returns the message."""
        return messages.DecisionKey(namespace=self.namespace, key=self.key, target=self.target)


@dataclass(frozen=True)
class Evidence:
    """What a decision rests on, as who proposed it says.

    Raises:
        ArgumentError: if a field has another type.
    """

    seconds: float = 0.0
    """Mean run time of the value; 0 if it is unknown"""
    runs: int = 0
    """Number of runs of the mean"""
    measured_configs: int = 0
    """Number of configurations that were measured"""
    tie_band: float = 0.0
    """Up to which relative difference times counted as equal"""
    machine: str = ""

    def __post_init__(self) -> None:
        """Checks what the caller passed."""
        number(self.seconds, "seconds")
        whole_number(self.runs, "runs")
        whole_number(self.measured_configs, "measured_configs")
        number(self.tie_band, "tie_band")
        text(self.machine, "machine")

    def message(self) -> messages.DecisionEvidence:
        """Returns the message."""
        return messages.DecisionEvidence(**asdict(self))


@dataclass(frozen=True)
class Decision:
    """What is decided for a key."""

    key: DecisionKey
    value: bytes
    """What the tuner of the namespace reads; of a space, a configuration as a JSON object"""
    generation: int
    """1 for the first decision of the key, and one more for each that superseded it"""
    snapshot: int
    """When it was made: it is seen from this snapshot on."""
    evidence: Evidence = field(default_factory=Evidence)
    reporter: str = ""
    """Who proposed it; empty if it is another client and the token lacks ``admin``."""
    decided_at: int = 0
    """When, in seconds since 1970"""


@dataclass(frozen=True)
class NearDecision:
    """A decision for the same key and device on another target: a candidate, never the answer."""

    decision: Decision
    different_parts: tuple[str, ...]
    """The parts in which its target differs"""


@dataclass(frozen=True)
class DecideAnswer:
    """The answer to ``decide``."""

    state: DecisionState
    """``decided``; ``claimed``: measure, and propose; ``held``: somebody else measures, ask again
    after ``retry_after``; ``undecided``"""
    snapshot: int
    """What to send with later calls, so that all of them see the same decisions."""
    decision: Decision | None = None
    expires_in: float = 0.0
    """Seconds until a claim expires that is not renewed"""
    retry_after: float = 0.0
    """Seconds to wait before the next call while another worker measures"""
    held_for: float = 0.0
    """Seconds for which another worker has measured"""
    near: tuple[NearDecision, ...] = ()


@dataclass(frozen=True, repr=False)
class DecisionsPage:
    """A part of the decisions of a server."""

    decisions: tuple[Decision, ...]
    next: bytes
    """What to pass as ``after`` for the next page; empty if this is the last one."""
    snapshot: int
    """What to pass as ``after_snapshot`` to see only what is decided later."""

    def __repr__(self) -> str:
        title = f"{len(self.decisions)} decisions, {'more follow' if self.next else 'all'}"
        rows = (
            (each.key.namespace, each.key.target, each.key.key.hex()[:12], each.generation)
            for each in self.decisions
        )
        headers = ("namespace", "target", "key", "generation")
        return table(title, headers, rows, len(self.decisions))


def decide_answer_of(answer: messages.DecideResponse, key: DecisionKey) -> DecideAnswer:
    """Converts a ``DecideResponse``. Raises AnswerError if it is impossible."""
    match answer.WhichOneof("outcome"):
        case "decided":
            decision = converted(Decision, answer.decided)
            if (decision.key.namespace, decision.key.key) != (key.namespace, key.key):
                raise AnswerError("the server answers with the decision of another key")
            return DecideAnswer("decided", answer.snapshot, decision)
        case "claimed":
            expires_in = seconds_of(answer.claimed.expires_in)
            return DecideAnswer("claimed", answer.snapshot, expires_in=expires_in)
        case "held":
            retry_after, since = seconds_of(answer.held.retry_after), seconds_of(answer.held.since)
            return DecideAnswer("held", answer.snapshot, retry_after=retry_after, held_for=since)
        case "undecided":
            near = tuple(converted(NearDecision, each) for each in answer.undecided.near)
            return DecideAnswer("undecided", answer.snapshot, near=near)
        case _:
            raise AnswerError("the server's answer says nothing of the key")


def decisions_page_of(answer: messages.ListDecisionsResponse) -> DecisionsPage:
    """Converts a ``ListDecisionsResponse``."""
    return converted(DecisionsPage, answer, next=answer.next_page_token)
