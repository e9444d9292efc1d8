"""Names of models, and what a server tells of them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hlorank.messages import ModelSelector
from hlorank.seconds import time_of
from hlorank.task import Task, task_of

_LABELS = ("stable", "canary")


@dataclass(frozen=True)
class ModelReference:
    """Names a model; printed as ``NAME``, ``NAME@VERSION``, ``NAME@stable`` or ``NAME@canary``."""

    name: str
    """Name in the registry."""
    version: int | None = None
    """A version of it that is loaded, from 1; None for whatever serves."""
    label: str | None = None
    """Which of the versions that serve, ``stable`` or ``canary``, without version."""

    def __post_init__(self) -> None:
        wrong_version = self.version is not None and self.version < 1
        wrong_label = self.label is not None and self.label not in _LABELS
        if not self.name or wrong_version or wrong_label or (self.version and self.label):
            raise ValueError(
                "a model is given as NAME, NAME@VERSION, NAME@stable or NAME@canary, "
                "versions counting from 1"
            )

    @classmethod
    def parse(cls, text: str) -> "ModelReference":
        """Reads what ``str`` prints; a ValueError for anything else."""
        name, at, version = text.partition("@")
        if not at:
            return cls(name)
        if version in _LABELS:
            return cls(name, label=version)
        return cls(name, int(version) if version.isdecimal() else 0)

    def __str__(self) -> str:
        version = self.version or self.label
        return f"{self.name}@{version}" if version else self.name

    def selector(self) -> Any:
        """The ``ModelSelector`` message."""
        return ModelSelector(name=self.name, version=self.version or 0, label=self.label or "")


def model_reference(model: "ModelReference | str") -> ModelReference:
    """The reference that text stands for."""
    return ModelReference.parse(model) if isinstance(model, str) else model


@dataclass(frozen=True)
class Model:
    """One version of one model. What its manifest says is there as long as it is loaded."""

    name: str
    version: int
    task: Task | None
    state: str
    """discovered, validating, warming, serving, retained, rejected or unloaded"""
    state_since: datetime
    serving: bool
    """Whether it is the stable version."""
    default_for_task: bool
    """Whether requests for its task that name no model reach it."""
    canary_percent: int
    """Of all graphs, those that it serves as the canary; 0 where it is none."""
    pinned: bool
    """Whether it serves whatever newer versions there are."""
    rejection: str | None
    """Why it was rejected: reason and message."""
    architecture: str
    kind: str
    """``segment`` or ``graph``."""
    batch_dependent: bool
    """Whether a score depends on the other configurations of its chunk."""
    chunk_configs: int
    """Configurations that a whole-graph model takes at a time; 0 for a segment model."""
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

    @property
    def reference(self) -> ModelReference:
        """What to ask for to be answered by it."""
        return ModelReference(self.name, self.version)


_SAME = (
    *("name", "version", "serving", "default_for_task", "canary_percent", "pinned"),
    *("architecture", "kind", "batch_dependent", "chunk_configs", "embedding_size", "pad_value"),
    *("digest", "feature_digest", "training_data_digest", "licence"),
)
"""Fields of the message that are taken as they are."""


def model_of(message: Any) -> Model:
    """The model that a ``Model`` message tells of."""
    rejection = message.rejection
    state = message.DESCRIPTOR.fields_by_name["state"].enum_type.values_by_number.get(message.state)
    return Model(
        **{field: getattr(message, field) for field in _SAME},
        task=task_of(message.task),
        state=state.name.removeprefix("MODEL_STATE_").lower() if state else str(message.state),
        state_since=time_of(message.state_since),
        rejection=f"{rejection.reason}: {rejection.message}" if rejection.reason else None,
        buckets=tuple(message.buckets),
        measured_quality=dict(message.measured_quality),
    )
