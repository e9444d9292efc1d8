# Generated from family.py of ``aio``: change that one.
"""What a server knows of all instances of a space, from which a policy is made."""

from collections.abc import Mapping
from math import inf

import numpy as np

from hlorank.answers.measurements import GraphMeasurements
from hlorank.answers.ranking import Ranking
from hlorank.calls.sync.calls import Calls
from hlorank.calls.sync.experience import kept_of, mean_times
from hlorank.checks.arguments import whole_number
from hlorank.checks.errors import ArgumentError
from hlorank.configurations.adapt import Adapt
from hlorank.configurations.config_features import ConfigFeatures
from hlorank.graphs.graph import Graph
from hlorank.spaces.policy import Policy, policy_of
from hlorank.spaces.space import Space

_INSTANCES = 4
"""Minimum number of instances of a policy: a quarter is held out."""
_CANDIDATES = 1_024
"""Maximum number of configurations to choose from."""
_TIMEOUT = 120.0
"""Seconds for a call by default: the first ones wait until the server has learned all instances."""
_BEING_LEARNED = "INSTANCES_BEING_LEARNED"
"""The reason of a warning that an answer does not rest on other instances yet."""


def family_policy(
    client: Calls, space: Space, target: str, choices: int, timeout: float | None
) -> Policy:
    """Returns the policy of the instances of a space that are measured on a target.

    Raises:
        ArgumentError: if too few instances with features are measured.
        RefusedError: if a call ends with an error status.
    """
    count = whole_number(choices, "choices", 1, _CANDIDATES)
    timeout = _TIMEOUT if timeout is None else timeout
    graphs, seconds = _measured(client, space, target, timeout)
    if len(graphs) < _INSTANCES:
        raise ArgumentError(
            f"{len(graphs)} instances of {space.name!r} with features are measured on {target!r}, "
            f"expected at least {_INSTANCES}"
        )
    candidates, logs = _candidates(seconds)
    table = np.empty(logs.shape)
    asked = space.configurations(candidates)
    for row, graph in enumerate(graphs):
        scores = np.zeros(len(candidates))
        if np.isnan(logs[row]).any():
            ranking = _ranked(client, graph, asked, Adapt(target, use_stored=True), timeout)
            scores[ranking.best] = ranking.best_scores
        table[row] = _completed(logs[row], scores)
    instances = [graph.instance for graph in graphs]
    return policy_of(
        space.name,
        [space[number] for number in candidates],
        [one for one in instances if isinstance(one, Mapping)],
        table - table.min(1, keepdims=True),
        count,
        1 - float(np.isnan(logs).mean()),
    )


def _ranked(
    client: Calls,
    graph: Graph,
    asked: ConfigFeatures,
    adapt: Adapt,
    timeout: float | None,
) -> Ranking:
    """Asks until the answer rests on all instances: a call waits for half of its deadline."""
    while True:
        ranking = client.rank(graph, asked, adapt=adapt, timeout=timeout)
        if all(warning.reason != _BEING_LEARNED for warning in ranking.warnings):
            return ranking


def _measured(
    client: Calls, space: Space, target: str, timeout: float | None
) -> tuple[list[Graph], list[dict[int, float]]]:
    """Returns the instances with features, and the mean seconds of each number in the space, which
    are infinite if it failed."""
    kept: dict[bytes, list[GraphMeasurements]] = {}
    for one in kept_of(client, target, b"", inf, timeout):
        of = one.configurations
        if isinstance(of, ConfigFeatures) and of.columns == len(space.parameters):
            kept.setdefault(one.graph_hash, []).append(one)
    graphs: list[Graph] = []
    means: list[dict[int, float]] = []
    own = space.graph.whole().feature_graph
    for graph_hash, lists in sorted(kept.items()):
        known = mean_times(lists, space.numbers)
        if not any(known.values()):
            continue
        graph = client.get_measured_graph(target, graph_hash, timeout=timeout)
        if graph is None or not isinstance(graph.instance, Mapping):
            continue
        its = graph.whole().feature_graph
        if (its.feature_set, its.config_columns) == (own.feature_set, own.config_columns):
            graphs.append(graph)
            means.append({number: seconds or inf for number, seconds in known.items()})
    return graphs, means


def _candidates(seconds: list[dict[int, float]]) -> tuple[list[int], np.ndarray]:
    """Returns the measured configurations, those first that are most often within a tenth of the
    fastest, and the logarithms of their times [instances, configurations]: NaN if not measured."""
    close: dict[int, int] = {}
    for known in seconds:
        limit = 1.1 * min(known.values())
        for number, each in known.items():
            close[number] = close.get(number, 0) + (each <= limit)
    candidates = sorted(close, key=lambda number: (-close[number], number))[:_CANDIDATES]
    rows = [[known.get(number, np.nan) for number in candidates] for known in seconds]
    return candidates, np.log(rows)


def _completed(logs: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Returns the logarithms of an instance, those that the server predicts in place of NaN, and
    failures as slow as the slowest."""
    ran = np.isfinite(logs)
    # Scores may be logarithms of times up to a number, which what was measured tells.
    level = (logs - scores)[ran].mean() if ran.any() else 0.0
    found: np.ndarray = np.where(np.isnan(logs), scores + level, logs)
    return np.where(np.isinf(logs), found[np.isfinite(found)].max(), found)
