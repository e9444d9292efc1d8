"""Client of hlorank, which ranks compiler configurations by predicted run time.

>>> from hlorank import Client, Graph, Layouts
>>> with Client("127.0.0.1:7070") as client:
...     ranking = client.rank(Graph.from_lowered(lowered), Layouts(values), top_k=10)
...     print("measure these first:", ranking.best)

What is public is named here, and in ``hlorank.tuners``, which has the adapters of other tuners.
"""

from hlorank.answers.adaptation import (
    Adaptation,
    Confidence,
    RelatedSource,
    Reporter,
    Warning,
)
from hlorank.answers.decisions import (
    DecideAnswer,
    Decision,
    DecisionKey,
    DecisionsPage,
    Evidence,
    NearDecision,
)
from hlorank.answers.leases import GrantedLease, Lease, LeaseState, SearchState
from hlorank.answers.measurements import GraphMeasurements, MeasurementsPage, Reported
from hlorank.answers.models import ComparedMean, Comparison, Model, ModelReference, Unit
from hlorank.answers.ranking import (
    BatchScores,
    CachedGraph,
    ConfigurableNode,
    KernelTime,
    Predicted,
    Ranking,
    Reuse,
    Timings,
)
from hlorank.answers.suggestions import Suggestion, Suggestions
from hlorank.calls.aio.client import AsyncClient
from hlorank.calls.aio.experience import AsyncExperience
from hlorank.calls.aio.search import AsyncSpaceSearch
from hlorank.calls.aio.stream import AsyncRankStream
from hlorank.calls.fallback import Fallback
from hlorank.calls.kept import Kept
from hlorank.calls.sync.client import Client
from hlorank.calls.sync.experience import Experience
from hlorank.calls.sync.search import SpaceSearch
from hlorank.calls.sync.stream import RankStream
from hlorank.checks.errors import (
    AnswerError,
    ArgumentError,
    BatchTooLongError,
    ClosedError,
    ConfigurationError,
    DeadlineError,
    GraphFileError,
    HandshakeError,
    HlorankError,
    InvalidRequestError,
    MissingFileError,
    NotFoundError,
    OverloadedError,
    PreconditionError,
    RefusedError,
    UnavailableError,
    UnsupportedError,
)
from hlorank.configurations import ConfigFeatures, Configurations, Fusions, Layouts, Tiles
from hlorank.configurations.adapt import FAILURES, Adapt, Result
from hlorank.graphs.features import FeatureSet
from hlorank.graphs.graph import Graph
from hlorank.spaces.policy import Policy
from hlorank.spaces.space import Space
from hlorank.wire.words import Task
from hlorank.worker.worker import Worker

__all__ = [
    "FAILURES",
    "Adapt",
    "Adaptation",
    "AnswerError",
    "ArgumentError",
    "AsyncClient",
    "AsyncExperience",
    "AsyncRankStream",
    "AsyncSpaceSearch",
    "BatchScores",
    "BatchTooLongError",
    "CachedGraph",
    "Client",
    "ClosedError",
    "ComparedMean",
    "Comparison",
    "Confidence",
    "ConfigFeatures",
    "ConfigurableNode",
    "ConfigurationError",
    "Configurations",
    "DeadlineError",
    "DecideAnswer",
    "Decision",
    "DecisionKey",
    "DecisionsPage",
    "Evidence",
    "Experience",
    "Fallback",
    "FeatureSet",
    "Fusions",
    "GrantedLease",
    "Graph",
    "GraphFileError",
    "GraphMeasurements",
    "HandshakeError",
    "HlorankError",
    "InvalidRequestError",
    "Kept",
    "KernelTime",
    "Layouts",
    "Lease",
    "LeaseState",
    "MeasurementsPage",
    "MissingFileError",
    "Model",
    "ModelReference",
    "NearDecision",
    "NotFoundError",
    "OverloadedError",
    "Policy",
    "PreconditionError",
    "Predicted",
    "RankStream",
    "Ranking",
    "RefusedError",
    "RelatedSource",
    "Reported",
    "Reporter",
    "Result",
    "Reuse",
    "SearchState",
    "Space",
    "SpaceSearch",
    "Suggestion",
    "Suggestions",
    "Task",
    "Tiles",
    "Timings",
    "UnavailableError",
    "Unit",
    "UnsupportedError",
    "Warning",
    "Worker",
]
