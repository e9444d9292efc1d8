"""Client of hlorank, which ranks compiler configurations by predicted run time.

>>> from hlorank import Client, Graph, Layouts
>>> with Client("127.0.0.1:7070") as client:
...     ranking = client.rank(Graph.from_lowered(lowered), Layouts(values), top_k=10)
...     print("measure these first:", ranking.best)
"""

from hlorank.adapt import Adapt, Adaptation, Confidence, Contradiction, Pool, TargetSource
from hlorank.aio import AsyncClient, AsyncRankStream
from hlorank.client import Client
from hlorank.comparison import ComparedMean, Comparison
from hlorank.config_features import ConfigFeatures
from hlorank.errors import (
    AnswerError,
    ArgumentError,
    BatchTooLongError,
    ClosedError,
    ConfigurationError,
    DeadlineError,
    GraphFileError,
    HlorankError,
    InvalidRequestError,
    MissingFileError,
    NotFoundError,
    OverloadedError,
    PreconditionError,
    RefusedError,
    UnavailableError,
)
from hlorank.files import MeasuredGraph, read_graphs
from hlorank.fusions import Fusions
from hlorank.graph import Graph
from hlorank.layouts import Layouts
from hlorank.measurements import GraphMeasurements, MeasurementsPage, Reported
from hlorank.model import FeatureSet, Model, ModelReference
from hlorank.rank_stream import RankStream
from hlorank.ranking import (
    BatchScores,
    CachedGraph,
    ConfigurableNode,
    KernelTime,
    Ranking,
    Reuse,
    Timings,
    Warning,
)
from hlorank.space import Space
from hlorank.space_search import AsyncSpaceSearch, SpaceSearch
from hlorank.suggest import Suggestion, Suggestions
from hlorank.task import Task
from hlorank.tiles import Tiles
from hlorank.unit import Unit

__all__ = [
    "Adapt",
    "Adaptation",
    "AnswerError",
    "ArgumentError",
    "AsyncClient",
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
    "Contradiction",
    "DeadlineError",
    "FeatureSet",
    "Fusions",
    "Graph",
    "GraphFileError",
    "GraphMeasurements",
    "HlorankError",
    "InvalidRequestError",
    "KernelTime",
    "Layouts",
    "MeasuredGraph",
    "MeasurementsPage",
    "MissingFileError",
    "Model",
    "ModelReference",
    "NotFoundError",
    "OverloadedError",
    "Pool",
    "PreconditionError",
    "RankStream",
    "Ranking",
    "RefusedError",
    "Reported",
    "Reuse",
    "Space",
    "SpaceSearch",
    "Suggestion",
    "Suggestions",
    "TargetSource",
    "Task",
    "Tiles",
    "Timings",
    "UnavailableError",
    "Unit",
    "Warning",
    "read_graphs",
]
