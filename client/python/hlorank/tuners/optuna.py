"""A sampler of Optuna that asks a server what to try next, and reports the run times."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import product
from math import prod
from threading import Lock
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.samplers import BaseSampler, TPESampler
from optuna.search_space import IntersectionSearchSpace
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from hlorank import ArgumentError, Client, Fallback, Result, Space, SpaceSearch
from hlorank.checks.arguments import wrong
from hlorank.spaces.space import Value
from hlorank.tuners.decider import Decider, State, key_of_space
from hlorank.tuners.proposals import column_of, result_of
from hlorank.wire import defaults
from hlorank.worker.agreement import OnAway

_COMBINATIONS = 10_000
_VALUES = 64
_OUTCOMES = (TrialState.COMPLETE, TrialState.PRUNED)
"""States of a trial that say what came of its parameters. A trial may also fail by Ctrl-C, or as
its process is lost."""
SearchSpace = dict[str, BaseDistribution]
Params = Mapping[str, Any]
"""Values of Optuna; those of categories may be anything"""
Column = dict[float, Value]
"""The values of the space by those in Optuna's internal representation, which are numbers"""


class Sampler(Decider, BaseSampler):
    """Samples parameters by what a server knows of run times; the objective is seconds.

    >>> sampler = Sampler(Client("127.0.0.1:7070"), "this machine", "matmul")
    >>> optuna.create_study(sampler=sampler).optimize(objective, n_trials=50)

    A range of more than 64 values, such as one of floats, has 64 that are evenly spaced on its
    scale. The server chooses from all combinations, or from 10,000 of them, the same ones in every
    study, so that studies go on from each other. Failed and pruned trials are failures. If the
    server is away, there is one warning, and Optuna's TPE goes on.

    With ``decide=True``, a study tries what is decided once and stops; without a decision, one
    process searches, and ``agreed`` proposes the best of its trials:

    >>> sampler = Sampler(client, "this machine", "matmul", search_space=space, decide=True)
    >>> study = optuna.create_study(sampler=sampler)
    >>> study.optimize(objective, n_trials=50)
    >>> sampler.agreed()
    {'tile': 64}

    Args:
        client: The server.
        target: What run times are measured on: hardware, compiler and flags. Never mix targets.
        name, instance: As of a ``hlorank.Space``: what is tuned, and its problem size.
        search_space: The parameters; None to take them from the first trial, which is TPE's.
        decide, on_away: As of a ``Decider``; ``decide`` needs ``search_space``.
        options: Of ``Client.search``: ``other_targets``, ``all_other_targets``, ``seed``, and
            ``lease``, so that no two processes try the same, also of different studies; its ``ttl``
            must be longer than a trial. Without it, what runs in the same study is known.

    Raises:
        ArgumentError: if an argument cannot be used; the message names it.
    """

    namespace = "optuna"

    def __init__(
        self,
        client: Client,
        target: str,
        name: str,
        *,
        instance: str = "",
        search_space: SearchSpace | None = None,
        decide: bool = False,
        on_away: OnAway = "default",
        **options: Any,
    ):
        # Refuses what a search would refuse only within the study.
        client.search(Space(name, {"any": [0]}, instance=instance), target, **options)
        for parameter, each in (search_space or {}).items():
            if not isinstance(each, BaseDistribution):
                raise wrong(f"search_space[{parameter!r}]", each, "a distribution of Optuna")
        self._given = search_space
        self._seen = IntersectionSearchSpace()
        self._tpe = TPESampler(seed=int(options.get("seed", 0)) % (1 << 32))
        options = {"fallback": Fallback("TPE goes on")} | options
        fallback = options["fallback"]
        super().__init__(client, target, decide=decide, on_away=on_away, fallback=fallback)
        if decide and search_space is None:
            raise wrong("search_space", search_space, "the parameters, since what is decided are")
        self._search_of: Callable[[Space], SpaceSearch] = partial(
            client.search, target=target, **options
        )
        self._named = name, instance
        self._turn = Lock()  # threads of a study share the sampler
        self._searched: SearchSpace = {}
        self._columns: dict[str, Column] = {}
        self._search: SpaceSearch | None = None
        self._state: State | None = None
        """Whether this process searches for all; None before the server was asked"""
        self._decided: dict[str, Value] | None = None
        self._crashed: list[Params] = []
        """Parameters of failed trials. Ctrl-C fails a trial, too, but no further one follows."""

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> SearchSpace:
        """Returns the parameters that the server chooses.

        Raises:
            ArgumentError: if the study does not minimize one value.
        """
        if study.directions != [StudyDirection.MINIMIZE]:
            raise ArgumentError(f"the study has {study.directions}, expected to minimize seconds")
        found = self._seen.calculate(study) if self._given is None else self._given
        return {name: found[name] for name in sorted(found) if not found[name].single()}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: SearchSpace
    ) -> dict[str, Any]:
        """Returns what the server suggests; nothing if it is away, or has nothing left."""
        with self._turn:
            if not search_space:
                return {}
            found: Mapping[str, Value] | None = None
            if self._search is None or search_space != self._searched:
                self._search = self._begin(study, search_space)
                found = self._search.predicted_best()
            while self._crashed:
                self._report(self._crashed.pop(), Result(failure="crash"))
            if self._state is None:
                space = self._search.space
                self._state, self._decided = self.decided(key_of_space(space), space.decoded)
            found = self._decided or found
            if not found:
                found = next(iter(self._search.suggest(pending=self._running(study))), {})
            return {name: self._value(name, value) for name, value in found.items()}

    def sample_independent(self, *arguments: object, **named: object) -> Any:
        """Samples a parameter by TPE."""
        # Also for parameters that only some trials have, which are no columns of the space.
        return self._tpe.sample_independent(*arguments, **named)

    def after_trial(
        self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """Reports a trial, if it is one of the combinations."""
        with self._turn:
            if state is not TrialState.FAIL:
                self._report(trial.params, _result(state, values))
                if self._decided is not None:
                    with suppress(RuntimeError):  # who asks and tells has no loop to stop
                        study.stop()
                return
            self._crashed.append(trial.params)
            # Its error may end the study. If not, the next trial claims it anew.
            if self._state == "claimed" and self._search is not None:
                self._state = None
                self.give_back(key_of_space(self._search.space))

    def agreed(self) -> dict[str, Any] | None:
        """Returns the parameters that everybody uses, after proposing the best of the trials.

        None if nothing is decided, such as while the server is away: never propose other ones.
        """
        with self._turn:
            if self._search is not None and self._state == "claimed":
                key = key_of_space(self._search.space)
                self._state = None
                self._decided = self.agree_on_best(key, self._search)
            if self._decided is None:
                return None
            given = self._given or {}
            alone = {name: _values(each)[0] for name, each in given.items() if each.single()}
            return alone | {name: self._value(name, one) for name, one in self._decided.items()}

    def _running(self, study: Study) -> list[int]:
        """Returns the numbers of what other processes try."""
        running = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        numbers = (self._number(each.params) for each in running)
        return [number for number in numbers if number is not None][-defaults.PENDING :]

    def _begin(self, study: Study, search_space: SearchSpace) -> SpaceSearch:
        self._columns = {name: _column(each) for name, each in search_space.items()}
        name, instance = self._named
        space = Space.from_configs(name, _combinations(self._columns), instance=instance)
        self._search = search = self._search_of(space)
        self._searched = search_space
        for trial in study.get_trials(deepcopy=False, states=_OUTCOMES):
            self._report(trial.params, _result(trial.state, trial.values))
        return search

    def _report(self, params: Params, result: Result) -> None:
        number = self._number(params)
        if self._search is not None and number is not None:
            seconds = None if result.failure else result.seconds
            self._search.report(number, seconds, failure=result.failure)

    def _number(self, params: Params) -> int | None:
        """Returns the number of parameters in the space; None if it does not have them."""
        if self._search is None:
            return None
        try:
            row = {
                name: self._columns[name][each.to_internal_repr(params[name])]
                for name, each in self._searched.items()
            }
            return self._search.space.number(row)
        # Such as a trial of TPE, between the values of the space, or of other categories, or one of
        # the combinations that were not drawn.
        except (KeyError, ValueError):
            return None

    def _value(self, name: str, value: Value) -> Any:
        internal = next(own for own, each in self._columns[name].items() if each == value)
        return self._searched[name].to_external_repr(internal)


def _result(state: TrialState, values: Sequence[float] | None) -> Result:
    """Returns what came of a trial that ended by itself. Its state decides: the value of a pruned
    trial is the last intermediate one."""
    if state is TrialState.COMPLETE and values:
        return result_of(values[0], "wrong_result")
    return Result(failure="timeout")


def _column(each: BaseDistribution) -> Column:
    values = _values(each)
    return dict(zip(map(each.to_internal_repr, values), column_of(values), strict=True))


def _combinations(columns: Mapping[str, Column]) -> list[dict[str, Value]]:
    lists = [list(column.values()) for column in columns.values()]
    if prod(map(len, lists)) <= _COMBINATIONS:
        rows = list(product(*lists))
    else:
        draw = np.random.default_rng(0)
        drawn = [[each[i] for i in draw.integers(len(each), size=_COMBINATIONS)] for each in lists]
        rows = list(dict.fromkeys(zip(*drawn, strict=True)))
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _values(each: BaseDistribution) -> list[Any]:
    if isinstance(each, CategoricalDistribution):
        # Equal ones, such as 1 and True, are one for Optuna, too: the first.
        first = {each.to_internal_repr(choice): None for choice in each.choices}
        return [each.to_external_repr(number) for number in first]
    if each.step and (each.high - each.low) / each.step < _VALUES:
        count = round((each.high - each.low) / each.step) + 1
        return [each.low + place * each.step for place in range(count)]
    spaced = (np.geomspace if each.log else np.linspace)(each.low, each.high, _VALUES)
    if each.step:
        spaced = each.low + np.unique(np.rint((spaced - each.low) / each.step)) * each.step
    is_whole = isinstance(each, IntDistribution)
    return [int(value) if is_whole else value for value in spaced.tolist()]
