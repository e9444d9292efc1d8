"""Rankings, and what else a server says of a graph."""

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from math import isclose, log

import numpy as np

from hlorank.answers.adaptation import Adaptation, Confidence, Warning
from hlorank.answers.converted import converted
from hlorank.answers.models import ModelReference, Unit, answered_reference, unit_of
from hlorank.answers.tables import table
from hlorank.checks.errors import AnswerError
from hlorank.wire import messages
from hlorank.wire.messages import PutGraphResponse, RankConfigsResponse

_STAYS = 1.02
"""By how much another configuration must be faster than a former pick. Picks then change in 2 % of
the cases at noise of 2 %, instead of in 27 %, and lose nothing."""


@dataclass(frozen=True)
class Timings:
    """Seconds spent in each stage on the server."""

    queue: float = 0.0
    """Waiting for a free worker."""
    featurize: float = 0.0
    """Reading, featurizing, pruning and segmenting the graph; 0 if it was cached."""
    parse: float = 0.0
    """Reading the configurations and finding the distinct ones."""
    encode: float = 0.0
    head: float = 0.0
    """Summing embeddings and evaluating the head."""
    rank: float = 0.0
    total: float = 0.0
    """From the decoded request until the answer."""

    def __add__(self, other: "Timings") -> "Timings":
        stages = (field.name for field in fields(self))
        return Timings(*(getattr(self, stage) + getattr(other, stage) for stage in stages))


@dataclass(frozen=True)
class Reuse:
    """Counts of what was requested, and of what was evaluated."""

    configs: int
    distinct_configs: int
    segment_rows: int
    """Pairs of segment and configuration before deduplication."""
    distinct_segment_rows: int
    rows_evaluated: int
    rows_cached: int


@dataclass(frozen=True)
class KernelTime:
    """A kernel that a fusion configuration runs."""

    node: int
    """Number of the node that it writes to memory."""
    computed_nodes: int
    """Number of nodes of the program that it computes, this one included."""
    seconds: float
    """Predicted run time; those of a configuration add up to its score."""


class Ranking:
    """The answer to ``rank``, or the end of a stream; its properties are converted on first use."""

    graph_hash: bytes

    scored: int
    """Number of configurations ranked: all of them, or the first ones in a partial ranking."""

    def __init__(
        self,
        answer: RankConfigsResponse,
        scores: Sequence[float] | None = None,
        earlier: "Timings | None" = None,
    ):
        """Takes a ranking, and adds ``earlier`` to its timings."""
        self._answer = answer
        self._scores = scores
        self._earlier = earlier
        self.scored = answer.scored_configs
        self.graph_hash = checked_graph_hash(answer.graph_hash)

    @cached_property
    def best(self) -> np.ndarray:
        """i64 [top_k]: numbers of configurations by ascending score, ties by number"""
        return np.array(self._answer.ranking, np.int64)

    @cached_property
    def best_scores(self) -> np.ndarray:
        """f32 [top_k]: their scores in ``unit``; lower is predicted faster. Infinite for a fusion
        that has a kernel beyond the model's limits"""
        return scores_of(self._answer.ranking_scores)

    @cached_property
    def scores(self) -> np.ndarray | None:
        """f32 [configs]: the score of every configuration in the order sent, if requested"""
        return None if self._scores is None else scores_of(self._scores)

    @cached_property
    def model(self) -> ModelReference | None:
        """The model version that answered; None if none did, but measurements alone."""
        return model_of_answer(self._answer.model)

    @cached_property
    def timings(self) -> Timings:
        """Seconds spent on the server; for a stream, the sum over its batches."""
        timings = converted(Timings, self._answer.timings)
        return timings + self._earlier if self._earlier else timings

    @cached_property
    def unit(self) -> Unit | None:
        """The unit of scores; None if they only order configurations."""
        return unit_of(self._answer.unit)

    @cached_property
    def kernels(self) -> tuple[tuple[KernelTime, ...], ...]:
        """The kernels of each of the first ``explain_top`` configurations of ``best``.

        Equal kernels are listed as often as they run. If the score is infinite, there are none.
        """
        return tuple(
            tuple(converted(KernelTime, each) for each in one.kernels)
            for one in self._answer.kernels
        )

    @cached_property
    def reuse(self) -> Reuse:
        """How much work was avoided."""
        return converted(Reuse, self._answer.reuse)

    @cached_property
    def predicted_seconds(self) -> np.ndarray:
        """f32 [top_k]: predicted run times of ``best``; empty if ``unit`` is None."""
        return scores_of(self._answer.predicted_seconds)

    @cached_property
    def log_sd(self) -> np.ndarray:
        """f32 [top_k]: standard deviations of their natural logarithms; empty if not adapted."""
        return scores_of(self._answer.log_sd)

    @cached_property
    def adaptation(self) -> Adaptation | None:
        """What the predictions rest on; None if no measurements were sent."""
        is_sent = self._answer.HasField("adaptation")
        return converted(Adaptation, self._answer.adaptation) if is_sent else None

    @cached_property
    def confidence(self) -> Confidence | None:
        """How far the ranking can be trusted; None if that was not asked."""
        is_sent = self._answer.HasField("confidence")
        return converted(Confidence, self._answer.confidence) if is_sent else None

    def keeps(self, former: int) -> bool:
        """Whether a former pick stays, a number of the ranking: no other configuration is predicted
        to be faster by 2 %. Without a unit, scores of a model do not tell."""
        (place,) = (self.best == former).nonzero()
        if not len(place):
            return False
        first, score = self.best_scores[[0, place[0]]].astype(np.float64)
        if self.unit == "seconds":
            return bool(score < first * _STAYS)
        learned = self.adaptation is not None and {*self.adaptation.rests_on} - {"model"}
        return bool(learned) and bool(score - first < log(_STAYS))

    @cached_property
    def warnings(self) -> tuple[Warning, ...]:
        """Notes about what is valid but unusual in the request."""
        return tuple(converted(Warning, each) for each in self._answer.warnings)

    def __repr__(self) -> str:
        title = f"Ranking of {self.scored:,} configurations by {self.model or 'measurements'}"
        columns = {"configuration": self.best, "score": self.best_scores}
        if len(self.predicted_seconds):
            columns["seconds"] = self.predicted_seconds
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        return table(title, list(columns), rows, len(self.best))


@dataclass(frozen=True, eq=False)
class BatchScores:
    """The scores of one batch of a stream."""

    first: int
    """Number of the batch's first configuration in the stream."""
    scores: np.ndarray
    """f32 [configs], comparable with those of the stream's other batches"""
    timings: Timings
    reuse: Reuse


@dataclass(frozen=True)
class ConfigurableNode:
    """One slot of a layout or fusion configuration."""

    node: int
    """Node number."""
    name: str
    """Instruction name. Graphs sent as features have only node and opcode."""
    opcode: str
    dimensions: tuple[int, ...]
    """Dimensions of the output."""
    tensor_ranks: tuple[int, ...]
    """Ranks of the output and the first two operands."""


@dataclass(frozen=True, repr=False)
class CachedGraph:
    """A server's summary of a graph."""

    hash: bytes
    nodes: int
    edges: int
    kept_nodes: int
    """Nodes that pruning keeps."""
    segments: int
    distinct_segments: int
    largest_segment: int
    """Number of nodes in the largest segment."""
    configurable_nodes: tuple[ConfigurableNode, ...]
    """The slots of a layout or fusion configuration, in order; empty for other tasks."""
    warnings: tuple[Warning, ...]

    def __repr__(self) -> str:
        title = (
            f"CachedGraph {self.hash.hex()[:12]}: {self.nodes:,} nodes, {self.segments} segments, "
            f"{len(self.configurable_nodes)} slots"
        )
        nodes = self.configurable_nodes
        rows = ((each.node, each.name, each.opcode, each.tensor_ranks) for each in nodes)
        return table(title, ("node", "name", "opcode", "ranks"), rows, len(nodes))


def batch_scores_of(answer: messages.BatchScores) -> BatchScores:
    """Converts a ``BatchScores`` message."""
    return converted(
        BatchScores, answer, first=answer.first_config, scores=scores_of(answer.scores)
    )


def cached_graph_of(answer: PutGraphResponse) -> CachedGraph:
    """Converts a ``PutGraphResponse`` message."""
    return converted(
        CachedGraph,
        answer.summary,
        hash=checked_graph_hash(answer.graph_hash),
        configurable_nodes=tuple(
            converted(ConfigurableNode, each) for each in answer.configurable_nodes
        ),
        warnings=tuple(converted(Warning, each) for each in answer.warnings),
    )


def scores_of(scores: Sequence[float]) -> np.ndarray:
    """Converts scores to f32."""
    return np.array(scores, np.float32)


def model_of_answer(selector: messages.ModelSelector) -> ModelReference | None:
    """Returns the model version that answered, if the answer names one."""
    return answered_reference(selector) if selector.name else None


def checked_graph_hash(graph_hash: bytes) -> bytes:
    """Returns the 32 bytes of the graph hash."""
    if len(graph_hash) != 32:
        raise AnswerError(f"the server's graph hash has {len(graph_hash)} bytes, not 32")
    return graph_hash


_SAME_SCORE = 1e-6
"""Relative difference below which the model cannot tell candidates apart."""


@dataclass(frozen=True)
class Predicted:
    """What a server predicts for candidates."""

    scores: np.ndarray
    """f64 [candidates]; lower is predicted faster"""
    unit: Unit | None
    """``seconds``, or None if scores only order candidates."""
    model: ModelReference | None
    """The model version that predicts; None if none does, but measurements alone."""
    is_learned: bool
    """Whether what was measured of this graph decides, too."""
    log_sd: np.ndarray | None
    """f64 [candidates]: standard deviations of the natural logarithms of seconds, if learned"""
    is_known: bool
    """Whether scores rest on anything at all."""


def predicted_of(ranking: Ranking) -> Predicted:
    """Converts a ranking of all candidates."""
    adaptation = ranking.adaptation
    back = np.argsort(ranking.best)
    scores = ranking.best_scores[back].astype(np.float64)
    in_logarithms = ranking.unit == "log_seconds"
    return Predicted(
        np.exp(scores) if in_logarithms else scores,
        "seconds" if in_logarithms else ranking.unit,
        ranking.model,
        adaptation is not None and adaptation.adapted,
        ranking.log_sd[back].astype(np.float64) if len(ranking.log_sd) else None,
        adaptation is not None and bool(adaptation.rests_on),
    )


def distinct_first(scores: np.ndarray, seen: Iterable[float] = ()) -> list[int]:
    """Returns the numbers of candidates by score; those with an earlier or seen score come last."""
    known = sorted(seen)
    first: list[int] = []
    alike: list[int] = []
    for number in np.argsort(scores, kind="stable").tolist():
        score = float(scores[number])
        place = bisect_left(known, score)
        is_known = any(
            isclose(score, other, rel_tol=_SAME_SCORE)
            for other in known[max(0, place - 1) : place + 1]
        )
        (alike if is_known else first).append(number)
        insort(known, score)
    return first + alike
