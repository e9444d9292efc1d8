"""What a server proposes to measure next."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hlorank.answers.adaptation import Adaptation, Confidence, Warning
from hlorank.answers.converted import converted
from hlorank.answers.leases import GrantedLease, Lease, SearchState
from hlorank.answers.models import ModelReference
from hlorank.answers.ranking import Timings, checked_graph_hash, model_of_answer
from hlorank.answers.tables import table
from hlorank.checks.arguments import U64, instance, one_of, whole_number, whole_numbers_of
from hlorank.checks.errors import AnswerError
from hlorank.configurations import Configurations
from hlorank.configurations.received import configurations_of
from hlorank.wire import defaults, messages
from hlorank.wire.messages import SuggestConfigsRequest, SuggestConfigsResponse

Reason = Literal["", "model", "expected_improvement", "random"]
Source = Literal["candidates", "segments", "nodes"]

_SOURCES = {
    "candidates": messages.SuggestionSource.SUGGESTION_SOURCE_BATCH,
    "segments": messages.SuggestionSource.SUGGESTION_SOURCE_SEGMENTS,
    "nodes": messages.SuggestionSource.SUGGESTION_SOURCE_NODES,
}


@dataclass(frozen=True)
class Suggestion:
    """A configuration to measure."""

    config: int
    """Number of the configuration among the candidates, or in ``Suggestions.combinations``."""
    reason: Reason
    """``model`` ranks it first, and too little was measured to learn from; the
    ``expected_improvement`` of the fastest time is the largest; or it was drawn at ``random``, as
    without a model until three are measured."""
    score: float
    """Predicted natural logarithm of seconds; the model's score if nothing was learned."""
    predicted_seconds: float
    """0 if nothing was learned, like the fields below"""
    log_sd: float
    """Standard deviation of the natural logarithm of the predicted time."""
    expected_improvement: float
    """By how much the natural logarithm of the fastest time is expected to fall."""


@dataclass(frozen=True, repr=False)
class Suggestions:
    """The answer to ``suggest``."""

    suggestions: tuple[Suggestion, ...]
    """In the order in which to measure them; fewer than asked for if no more are left."""
    combinations: Configurations | None
    """Their configurations in the same order, if the server combined or drew them."""
    adaptation: Adaptation | None
    """What the predictions rest on; None if no measurements were sent."""
    model: ModelReference | None
    """The model version that answered; None if none did, but measurements alone."""
    graph_hash: bytes
    timings: Timings
    """Seconds spent in each stage on the server."""
    leases: tuple[GrantedLease, ...] = ()
    """The lease of each suggestion, if leases were asked for."""
    state: SearchState = ""
    retry_after: float = 0.0
    """Seconds after which to ask again, if other workers measure all that is left."""
    confidence: Confidence | None = None
    """How far a ranking by score can be trusted; None if that was not asked."""
    warnings: tuple[Warning, ...] = ()
    """Notes about what is valid but unusual in the request."""

    @property
    def configs(self) -> np.ndarray:
        """i64 [suggestions]: numbers of the configurations to measure"""
        return np.array([suggestion.config for suggestion in self.suggestions], np.int64)

    def __repr__(self) -> str:
        title = f"Suggestions by {self.model or 'measurements'}"
        rows = (
            (each.config, each.reason, each.predicted_seconds, each.expected_improvement)
            for each in self.suggestions
        )
        headers = ("configuration", "reason", "seconds", "expected improvement")
        return table(title, headers, rows, len(self.suggestions))


@dataclass(frozen=True)
class Wanted:
    """Which suggestions are asked for."""

    count: int = 1
    """Number of suggestions, from 1 to 64."""
    pending: Sequence[int] = ()
    """Numbers of configurations that are being measured."""
    since_improvement: int = 0
    """Number of measurements since the fastest one."""
    seed: int = 0
    """Seed of random suggestions."""
    source: Source = "candidates"
    """Where suggestions come from."""
    lease: Lease | None = None
    """Whether, and to whom, they are leased."""

    def __post_init__(self) -> None:
        """Checks what the caller passed. Raises ArgumentError."""
        # The wire has 0 for its default, which is 1.
        whole_number(self.count, "count", 1, defaults.SUGGESTED)
        whole_number(self.since_improvement, "since_improvement")
        whole_number(self.seed, "seed", most=U64)
        whole_numbers_of(self.pending, "pending")
        one_of(self.source, _SOURCES, "source")
        if self.lease is not None:
            instance(self.lease, Lease, "lease", "a Lease or None")

    def message(
        self,
        source: messages.Graph,
        selector: messages.ModelSelector | None,
        adapt: messages.Adapt | None,
    ) -> SuggestConfigsRequest:
        """Returns the request for a graph, a model and measurements, without candidates."""
        return SuggestConfigsRequest(
            graph=source,
            model=selector,
            adapt=adapt,
            count=self.count,
            pending=[int(config) for config in self.pending],
            since_improvement=self.since_improvement,
            seed=self.seed,
            source=_SOURCES[self.source],
            lease=None if self.lease is None else self.lease.message(),
        )


def suggestions_of(answer: SuggestConfigsResponse, wanted: Wanted, candidates: int) -> Suggestions:
    """Converts a ``SuggestConfigsResponse``. Raises AnswerError if it is impossible."""
    configs = [suggestion.config for suggestion in answer.suggestions]
    leased = 0 if wanted.lease is None else len(configs)
    if len(answer.leases) != leased:
        raise AnswerError(
            f"the server granted {len(answer.leases)} leases for {leased} suggestions"
        )
    if len(configs) > wanted.count:
        raise AnswerError(f"the server made {len(configs)} suggestions instead of {wanted.count}")
    combinations = None
    if answer.HasField("combinations"):
        packed = messages.ConfigBatch(packed_layout_configs=answer.combinations)
        combinations = configurations_of(packed)
    elif answer.configs.configs:
        combinations = configurations_of(messages.ConfigBatch(parameter_configs=answer.configs))
    known = set() if combinations else set(map(int, wanted.pending))
    candidates = candidates if combinations is None else len(combinations)
    if any(config >= candidates or config in known for config in configs):
        raise AnswerError("the server suggests what was not sent, or what is pending")
    if len(set(configs)) < len(configs):
        raise AnswerError("the server suggests a configuration twice")
    return converted(
        Suggestions,
        answer,
        combinations=combinations,
        model=model_of_answer(answer.model),
        graph_hash=checked_graph_hash(answer.graph_hash),
    )
