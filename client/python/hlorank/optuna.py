"""A sampler of Optuna that asks a server what to try next, and reports the run times."""

import warnings
from collections.abc import Sequence
from itertools import product
from math import prod
from threading import Lock
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.samplers import BaseSampler, TPESampler
from optuna.search_space import IntersectionSearchSpace
from optuna.study import StudyDirection
from optuna.trial import TrialState

from hlorank import AnswerError, ArgumentError, Client, RefusedError, Space

_COMBINATIONS = 10_000
_VALUES = 64
_FAILURES = {TrialState.FAIL: "crash", TrialState.PRUNED: "timeout"}
SearchSpace = dict[str, BaseDistribution]


class Sampler(BaseSampler):
    """Samples parameters by what a server knows of run times; the objective is seconds.

    >>> sampler = Sampler(Client("127.0.0.1:7070"), "this machine", "matmul")
    >>> optuna.create_study(sampler=sampler).optimize(objective, n_trials=50)

    A range of more than 64 values, such as one of floats, has 64 that are evenly spaced on its
    scale. The server chooses from all combinations, or from 10,000 of them, the same ones in every
    study, so that studies go on from each other. Failed and pruned trials are failures. If the
    server is away, there is one warning, and Optuna's TPE goes on.

    Args:
        client: The server.
        target: What run times are measured on: hardware, compiler and flags. Never mix targets.
        name, instance: As of a ``hlorank.Space``: what is tuned, and its problem size.
        search_space: The parameters; None to take them from the first trial, which is TPE's.
        options: Of ``Client.search``: ``other_targets``, ``all_other_targets``, ``seed``.
    """

    def __init__(
        self,
        client: Client,
        target: str,
        name: str,
        *,
        instance: str = "",
        search_space: SearchSpace | None = None,
        **options: Any,
    ):
        self._given = search_space
        self._seen = IntersectionSearchSpace()
        self._tpe = TPESampler(seed=options.get("seed", 0))
        self._search_of = lambda space: client.search(space, target, **options)
        self._names = {"name": name, "instance": instance}
        self._turn = Lock()
        self._searched: SearchSpace = {}
        self._space: Any = None
        self._search: Any = None
        self._is_away = False

    def infer_relative_search_space(self, study: Any, trial: Any) -> SearchSpace:
        """Returns the parameters that the server chooses.

        Raises:
            ArgumentError: if the study does not minimize one value.
        """
        if study.directions != [StudyDirection.MINIMIZE]:
            raise ArgumentError(f"the study has {study.directions}, expected to minimize seconds")
        found = self._seen.calculate(study) if self._given is None else self._given
        return {name: found[name] for name in sorted(found) if not found[name].single()}

    def sample_relative(self, study: Any, trial: Any, search_space: SearchSpace) -> dict[str, Any]:
        """Returns what the server suggests; nothing if it is away, or has nothing left."""
        with self._turn:
            try:
                return self._suggested(study, search_space) if search_space else {}
            except (RefusedError, AnswerError) as error:
                return self._lose(error)

    def sample_independent(self, *arguments: Any, **named: Any) -> Any:
        """Samples a parameter by TPE."""
        return self._tpe.sample_independent(*arguments, **named)

    def after_trial(
        self, study: Any, trial: Any, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """Reports a trial, if it is one of the combinations."""
        with self._turn:
            try:
                self._report(trial.params, state, values)
            except (RefusedError, AnswerError) as error:
                self._lose(error)

    def _suggested(self, study: Any, search_space: SearchSpace) -> dict[str, Any]:
        if self._is_away:
            return {}
        if search_space != self._searched:
            self._space = Space.from_configs(configs=_combinations(search_space), **self._names)
            self._search, self._searched = self._search_of(self._space), search_space
            for trial in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
                self._report(trial.params, trial.state, trial.values)
            if best := self._search.predicted_best():
                return best
        return next(iter(self._search.suggest()), {})

    def _report(self, params: Any, state: TrialState, values: Sequence[float] | None) -> None:
        if self._search is None or self._is_away:
            return
        try:
            number = self._space.number({name: params.get(name) for name in self._searched})
        except ArgumentError:  # such as a trial of TPE
            return
        failure = None if values else _FAILURES[state]
        self._search.report(number, values[0] if values else None, failure=failure)

    def _lose(self, error: Exception) -> dict[str, Any]:
        self._is_away = True
        warnings.warn(f"hlorank: {error}; TPE goes on", stacklevel=2)
        return {}


def _combinations(search_space: SearchSpace) -> list[dict[str, Any]]:
    lists = [_values(each) for each in search_space.values()]
    if prod(map(len, lists)) <= _COMBINATIONS:
        rows = list(product(*lists))
    else:
        draw = np.random.default_rng(0)
        columns = [
            [each[i] for i in draw.integers(len(each), size=_COMBINATIONS)] for each in lists
        ]
        rows = list(dict.fromkeys(zip(*columns, strict=True)))
    return [dict(zip(search_space, row, strict=True)) for row in rows]


def _values(each: Any) -> list[Any]:
    if isinstance(each, CategoricalDistribution):
        return list(each.choices)
    if each.step and (each.high - each.low) / each.step < _VALUES:
        count = round((each.high - each.low) / each.step) + 1
        return [each.low + place * each.step for place in range(count)]
    spaced = (np.geomspace if each.log else np.linspace)(each.low, each.high, _VALUES)
    if each.step:
        spaced = each.low + np.unique(np.rint((spaced - each.low) / each.step)) * each.step
    is_whole = isinstance(each, IntDistribution)
    return [int(value) if is_whole else value for value in spaced.tolist()]
