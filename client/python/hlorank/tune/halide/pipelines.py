"""A Halide pipeline while its schedule is tuned."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from hlorank.config_features import ConfigFeatures
from hlorank.halide.drawing import GREEDY
from hlorank.halide.schedule import Draw, Schedule
from hlorank.tune.halide.ranking import configurations_of
from hlorank.tune.settings import Settings
from hlorank.tune.subject import InOrder, Subject

_EVERY = 1 << 20


class TunedPipeline(Subject[Draw]):
    """A pipeline and its schedules, each of which is a draw; the reference is the greedy one."""

    reference = GREEDY
    default = GREEDY
    graph = None
    predicted_at_once = _EVERY

    def __init__(
        self, drawn: Callable[[int], Sequence[Draw]], schedule: Callable[[Draw], Schedule]
    ):
        """``drawn`` returns the draws of distinct schedules, ``schedule`` that of a draw."""
        self._drawn = drawn
        self._schedule = schedule

    def strategy(
        self, settings: Settings, random: np.random.Generator, batch: int, steps: int, start: list
    ) -> InOrder[Draw]:
        """Returns a strategy that proposes every schedule; at random if no model ranks them."""
        draws = list(self._drawn(settings.predictions))
        if not settings.with_model:
            draws = [draws[place] for place in random.permutation(len(draws))]
        return InOrder(draws, batch)

    def configurations(self, candidates: Sequence[Draw]) -> ConfigFeatures:
        """Returns schedules as configurations of the pipeline's graph."""
        return configurations_of([self._schedule(draw) for draw in candidates])

    def key(self, candidate: Draw) -> Hashable:
        """Returns the draw: those that repeat an earlier schedule are never proposed."""
        return candidate

    def written(self, candidate: Draw) -> dict[str, Any]:
        """Returns how a schedule is drawn."""
        return {} if candidate == GREEDY else asdict(candidate)

    def read(self, written: Mapping[str, Any]) -> Draw:
        """Converts a draw back."""
        return Draw(**written) if written else GREEDY
