"""Names and descriptions of models."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hlorank.arguments import U32, instance, text, whole_number
from hlorank.errors import AnswerError, ArgumentError
from hlorank.messages import ModelSelector
from hlorank.seconds import time_of
from hlorank.task import Task, task_of
from hlorank.unit import Unit, unit_of

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
        wrong_version = self.version is not None and self.version < 1
        wrong_label = self.label is not None and self.label not in _LABELS
        if not self.name or wrong_version or wrong_label or (self.version and self.label):
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

    def selector(self) -> Any:
        """Returns the ``ModelSelector`` message."""
        return ModelSelector(name=self.name, version=self.version or 0, label=self.label or "")


def model_reference(model: "ModelReference | str") -> ModelReference:
    """Parses a reference if it is given as text."""
    if isinstance(model, str):
        return ModelReference.parse(model)
    return instance(model, ModelReference, "model", "NAME, NAME@VERSION or a ModelReference")


def answered_reference(selector: Any) -> ModelReference:
    """Converts the ``ModelSelector`` of an answer. Raises AnswerError if it names no model."""
    if not selector.name:
        raise AnswerError("the server's answer does not name the model")
    return ModelReference(selector.name, selector.version or None)


@dataclass(frozen=True)
class FeatureSet:
    """A named list of columns, which the manifest of a model defines."""

    name: str
    node_features: tuple[str, ...]
    """Names of the columns of a node, in order."""
    config_features: tuple[str, ...]
    """Names of the columns of a node in a configuration, in order."""


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


_SAME = (
    *("name", "version", "serving", "default_for_task", "canary_percent", "pinned"),
    *("architecture", "kind", "batch_dependent", "chunk_configs", "embedding_size", "pad_value"),
    *("digest", "feature_digest", "training_data_digest", "licence"),
)
"""Fields that are copied from the message unchanged."""


def model_of(message: Any) -> Model:
    """Converts a ``Model`` message."""
    rejection = message.rejection
    state = message.DESCRIPTOR.fields_by_name["state"].enum_type.values_by_number.get(message.state)
    return Model(
        **{field: getattr(message, field) for field in _SAME},
        task=task_of(message.task),
        unit=unit_of(message.unit),
        feature_set=_feature_set_of(message),
        state=state.name.removeprefix("MODEL_STATE_").lower() if state else str(message.state),
        state_since=time_of(message.state_since),
        rejection=f"{rejection.reason}: {rejection.message}" if rejection.reason else None,
        buckets=tuple(message.buckets),
        targets=tuple(message.targets),
        measured_quality=dict(message.measured_quality),
    )


def _feature_set_of(message: Any) -> FeatureSet | None:
    if not message.HasField("feature_set"):
        return None
    columns = message.feature_set
    return FeatureSet(columns.name, tuple(columns.node_features), tuple(columns.config_features))
