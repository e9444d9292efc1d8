"""Scores of schedules by the model of a server."""

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


def rank_schedules(
    client: Client, schedules: Sequence[Schedule], model: str | None = None
) -> Ranking:
    """Ranks schedules of one pipeline in one call; ``scores`` are in their order.

    Raises:
        HlorankError: if the call fails.
    """
    first = schedules[0]
    return client.rank(
        Graph.from_feature_set(FEATURE_SET, first.node_features, first.edges),
        ConfigFeatures(np.stack([schedule.config_features for schedule in schedules])),
        model=model,
        with_scores=True,
        timeout=_TIMEOUT,
    )
