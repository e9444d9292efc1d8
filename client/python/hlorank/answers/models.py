"""Names, descriptions and comparisons of models."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from hlorank.answers.converted import converted
from hlorank.checks.arguments import U32, instance, text, whole_number
from hlorank.checks.errors import AnswerError, ArgumentError
from hlorank.graphs.features import FeatureSet
from hlorank.wire import messages
from hlorank.wire.messages import CompareModelsResponse, ModelSelector
from hlorank.wire.words import Task, known_word, task_of

Unit = Literal["seconds", "log_seconds"]
"""``seconds`` of run time, or the natural logarithm of them."""
Better = Literal["first", "second"]
"""Which of two compared versions ranks better."""

_LABELS = ("stable", "canary")
_FORM = (
    "a model is given as NAME, NAME@VERSION, NAME@stable or NAME@canary, and versions count from 1"
)


@dataclass(frozen=True)
class ModelReference:
    """Names a model; printed as ``NAME``, ``NAME@VERSION``, ``NAME@stable`` or ``NAME@canary``."""

    name: str
    """Name in the registry."""
    version: int | None = None
    """A loaded version, from 1; None for the version that serves."""
    label: str | None = None
    """``stable`` or ``canary``; excludes ``version``."""

    def __post_init__(self) -> None:
        text(self.name, "name", "the name of a model")
        if self.version is not None:
            whole_number(self.version, "version", 0)
        if self.label is not None:
            text(self.label, "label", "'stable' or 'canary'")
        is_named_twice = self.version is not None and self.label is not None
        is_known = self.version != 0 and self.label in (None, *_LABELS)
        if not self.name or is_named_twice or not is_known:
            raise ArgumentError(_FORM)

    @classmethod
    def parse(cls, given: str) -> "ModelReference":
        """Parses the output of ``str``; raises an ArgumentError for other text."""
        name, at, version = text(given, "model", "NAME or NAME@VERSION").partition("@")
        if not at:
            return cls(name)
        if version in _LABELS:
            return cls(name, label=version)
        if not (version.isascii() and version.isdecimal() and 0 < int(version[:10]) <= U32):
            raise ArgumentError(f"model '{given}' has the version '{version}': {_FORM}")
        return cls(name, whole_number(int(version[:11]), "version", 1))

    def __str__(self) -> str:
        version = self.version or self.label
        return f"{self.name}@{version}" if version else self.name

    def selector(self) -> ModelSelector:
        """Returns the ``ModelSelector`` message."""
        return ModelSelector(name=self.name, version=self.version or 0, label=self.label or "")


def model_reference(model: "ModelReference | str") -> ModelReference:
    """Parses a reference if it is given as text."""
    if isinstance(model, str):
        return ModelReference.parse(model)
    return instance(model, ModelReference, "model", "NAME, NAME@VERSION or a ModelReference")


def answered_reference(selector: ModelSelector) -> ModelReference:
    """Converts the ``ModelSelector`` of an answer. Raises AnswerError if it names no model."""
    if not selector.name:
        raise AnswerError("the server's answer does not name the model")
    return ModelReference(selector.name, selector.version or None)


@dataclass(frozen=True)
class Model:
    """One model version. The fields of its manifest are set only while it is loaded."""

    name: str
    version: int
    task: Task | None
    state: str
    """``discovered``, ``validating``, ``warming``, ``serving``, ``retained``, ``rejected`` or
    ``unloaded``"""
    state_since: datetime
    serving: bool
    """Whether it is the stable version."""
    default_for_task: bool
    """Whether it ranks calls of its task that name no model."""
    canary_percent: int
    """Percentage of graphs that it serves as the canary; 0 if it is not the canary."""
    pinned: bool
    """Whether it keeps serving although newer versions exist."""
    rejection: str | None
    """Reason and message of its rejection; None if it was not rejected."""
    architecture: str
    kind: str
    """``segment`` or ``graph``."""
    batch_dependent: bool
    """Whether a score depends on the other configurations of its chunk."""
    chunk_configs: int
    """Configurations per chunk of a whole-graph model; 0 for a segment model."""
    embedding_size: int
    buckets: tuple[int, ...]
    """Padded segment sizes in nodes, ascending."""
    pad_value: int
    digest: bytes
    feature_digest: bytes
    training_data_digest: bytes
    measured_quality: dict[str, float]
    """Figures on held-out data, such as ``kendall_tau``."""
    licence: str
    unit: Unit | None
    """The unit of its scores before adaptation; None if they only order configurations."""
    targets: tuple[str, ...]
    """What it was trained for, each ``HARDWARE, COMPILER VERSION, FLAG, ...``; empty if unknown."""
    feature_set: FeatureSet | None
    """The set of the graphs that it takes; None for graphs of HLO."""

    @property
    def reference(self) -> ModelReference:
        """The reference that selects this version."""
        return ModelReference(self.name, self.version)


def model_of(message: messages.Model) -> Model:
    """Converts a ``Model`` message."""
    rejection = message.rejection
    return converted(
        Model,
        message,
        task=task_of(message.task),
        rejection=f"{rejection.reason}: {rejection.message}" if rejection.reason else None,
        measured_quality=dict(message.measured_quality),
    )


def unit_of(value: messages.ScoreUnit.ValueType) -> Unit | None:
    """Returns a unit of scores; None if they only order configurations."""
    unit: Unit | None = known_word(messages.ScoreUnit.DESCRIPTOR, value, Unit)
    return unit


@dataclass(frozen=True)
class ComparedMean:
    """The means of a measure over graphs."""

    first: float
    """That of the first version."""
    second: float
    """That of the second version."""
    difference: tuple[float, float]
    """95 % interval of the second mean minus the first."""


@dataclass(frozen=True)
class Comparison:
    """How two versions rank the same measurements."""

    first: ModelReference
    second: ModelReference
    graphs: int
    """Number of graphs that both versions ranked."""
    configs: int
    """Number of their distinct measured configurations."""
    kendall_tau: ComparedMean
    """Kendall's tau of scores and run times: 1 for the same order."""
    ordered_pairs: ComparedMean
    """Share of the pairs of different run times in the right order."""
    top_pick_regret: ComparedMean
    """Slowdown of the measured configuration with the best score: 0.1 for 10 %."""
    better: Better | None
    """Which version ranks better by Kendall's tau; None if that is undecided."""


def comparison_of(answer: CompareModelsResponse) -> Comparison:
    """Converts a ``CompareModelsResponse``. Raises AnswerError if it names no versions."""
    means = ("kendall_tau", "ordered_pairs", "top_pick_regret")
    return converted(
        Comparison,
        answer,
        first=answered_reference(answer.first),
        second=answered_reference(answer.second),
        **{name: _mean_of(getattr(answer, name)) for name in means},
        better=known_word(messages.Verdict.DESCRIPTOR, answer.verdict, Better),
    )


def _mean_of(mean: messages.ComparedMean) -> ComparedMean:
    return ComparedMean(mean.first, mean.second, (mean.difference_low, mean.difference_high))
