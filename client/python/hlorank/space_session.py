"""The search of a space on a target, shared by the sync and the async client."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from hlorank.adapt import Adapt, Adaptation
from hlorank.arguments import instance, number
from hlorank.errors import ArgumentError, RefusedError
from hlorank.model import ModelReference
from hlorank.parameter import Value
from hlorank.ranking import Ranking
from hlorank.session import Session
from hlorank.space import Configuration, Space
from hlorank.suggest import Wanted

_PENDING = 256
"""Maximum number of pending configurations of a call."""
_NO_STORE = "MEASUREMENTS_OFF"


@dataclass(frozen=True)
class Target:
    """What a space is measured on, and what else teaches about it."""

    name: str
    other_targets: Sequence[str] = ()
    all_other_targets: bool = False
    model: ModelReference | str | None = None


@dataclass(frozen=True)
class Outcome:
    """What came of measuring a configuration."""

    number: int
    seconds: float
    """0 if it failed"""
    failure: str | None
    repeats: int


@dataclass
class SpaceSession:
    """What was measured of a space, and what a server says about the rest."""

    session: Session
    space: Space
    target: Target
    seed: int
    adaptation: Adaptation | None = None
    """What the last answer rests on."""
    best: tuple[dict[str, Value], float] | None = None
    """The fastest configuration that was reported here, and its seconds."""
    _sent_with_calls: list[Outcome] = field(default_factory=list)
    """What the server does not keep."""
    _pending: dict[int, None] = field(default_factory=dict)
    """Suggestions that were not reported yet, in the order made."""
    _has_store: bool = True
    """Whether the server keeps measurements, as far as is known."""

    def __post_init__(self) -> None:
        """Checks what the caller passed. Raises ArgumentError."""
        instance(self.space, Space, "space", "a hlorank.Space")
        Wanted(seed=self.seed)
        self._adapt([])

    async def suggest(self, count: int, timeout: float | None) -> list[dict[str, Value]]:
        """Proposes what to measure next."""
        wanted = Wanted(count, list(self._pending)[-_PENDING:], seed=self.seed)
        suggestions = await self.session.suggest(
            self.space.graph,
            self.space.configurations(),
            wanted,
            self.target.model,
            self._adapt(self._sent_with_calls),
            timeout,
        )
        self.adaptation = suggestions.adaptation
        numbers = suggestions.configs.tolist()
        self._pending |= dict.fromkeys(numbers)
        return [self.space[number] for number in numbers]

    async def rank(self, top_k: int, timeout: float | None) -> Ranking:
        """Ranks the whole space."""
        ranking = await self.session.rank(
            self.space.graph,
            self.space.configurations(),
            top_k,
            self.target.model,
            with_scores=False,
            allow_partial=False,
            adapt=self._adapt(self._sent_with_calls),
            explain_top=0,
            assess_confidence=False,
            timeout=timeout,
        )
        self.adaptation = ranking.adaptation
        return ranking

    async def predicted_best(self, timeout: float | None) -> dict[str, Value] | None:
        """Returns the first of the ranking, if it rests on anything."""
        ranking = await self.rank(1, timeout)
        is_known = ranking.adaptation is not None and bool(ranking.adaptation.rests_on)
        return self.space[int(ranking.best[0])] if is_known else None

    async def report(self, outcome: Outcome, timeout: float | None) -> None:
        """Adds a measurement, which a server with a store keeps."""
        message = self._adapt([outcome])
        self._note(outcome)
        if not self._has_store:
            return
        try:
            await self.session.report_measurements(self.space.graph, message, timeout)
        except RefusedError as error:
            if error.reason != _NO_STORE:
                raise
            self._has_store = False
        else:
            self._sent_with_calls.remove(outcome)

    def _note(self, outcome: Outcome) -> None:
        self._pending.pop(outcome.number, None)
        self._sent_with_calls.append(outcome)
        if outcome.seconds > 0 and (self.best is None or outcome.seconds < self.best[1]):
            self.best = self.space[outcome.number], outcome.seconds

    def _adapt(self, outcomes: Sequence[Outcome]) -> Adapt:
        numbers = [outcome.number for outcome in outcomes]
        return Adapt(
            self.target.name,
            self.space.configurations(numbers) if numbers else None,
            [outcome.seconds for outcome in outcomes],
            [outcome.repeats for outcome in outcomes],
            [outcome.failure for outcome in outcomes],
            use_stored=self._has_store,
            other_targets=self.target.other_targets,
            all_other_targets=self.target.all_other_targets,
        )


def outcome_of(
    space: Space,
    configuration: Configuration | int,
    seconds: float | None,
    failure: str | None,
    repeats: int,
) -> Outcome:
    """Checks a measurement, which has either a time or a failure. Raises ArgumentError."""
    if (seconds is None) == (failure is None):
        raise ArgumentError("a measurement has either seconds or a failure")
    time = 0.0 if seconds is None else number(seconds, "seconds")
    return Outcome(space.number(configuration), time, failure, repeats)
