"""Schedules as a server's model ranks them."""

from collections.abc import Sequence

import numpy as np

from hlorank.client import Client
from hlorank.config_features import ConfigFeatures
from hlorank.graph import Graph
from hlorank.halide.features import FEATURE_SET
from hlorank.halide.schedule import Schedule
from hlorank.ranking import Ranking

_TIMEOUT = 60.0
"""Deadline of a call in seconds."""


def graph_of(schedule: Schedule) -> Graph:
    """Returns the graph of a schedule's pipeline."""
    return Graph.from_feature_set(FEATURE_SET, schedule.node_features, schedule.edges)


def configurations_of(schedules: Sequence[Schedule]) -> ConfigFeatures:
    """Returns schedules of one pipeline as configurations of its graph."""
    return ConfigFeatures(np.stack([schedule.config_features for schedule in schedules]))


def rank_schedules(
    client: Client, schedules: Sequence[Schedule], model: str | None = None
) -> Ranking:
    """Ranks schedules of one pipeline in one call; ``scores`` are in their order.

    Raises:
        HlorankError: if the call fails.
    """
    return client.rank(
        graph_of(schedules[0]),
        configurations_of(schedules),
        model=model,
        with_scores=True,
        timeout=_TIMEOUT,
    )
