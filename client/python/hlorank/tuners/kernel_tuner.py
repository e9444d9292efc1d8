"""A strategy of Kernel Tuner that asks a server what to measure next, and reports the times."""

import random
from collections.abc import Iterator
from copy import copy
from time import sleep
from typing import Any

from kernel_tuner.interface import Options, strategy_map
from kernel_tuner.runners.runner import Runner
from kernel_tuner.searchspace import Searchspace
from kernel_tuner.strategies.common import CostFunc
from kernel_tuner.util import (
    CompilationFailedConfig,
    InvalidConfig,
    StopCriterionReached,
    TuningBudget,
    get_kernel_string,
)

from hlorank import ArgumentError, Client, Fallback, Space, SpaceSearch
from hlorank.spaces.space import Value
from hlorank.tuners.decider import Decider, key_of_space
from hlorank.tuners.proposals import column_of, result_of
from hlorank.worker.agreement import Group, OnAway

_FALLBACK = "genetic_algorithm"
"""The strategy of Kernel Tuner that goes on if the server is away."""
_CANDIDATES = 20_000
"""Maximum number of configurations that every call sends."""
_MILLISECOND = 1e-3

Columns = dict[str, dict[Value, Any]]
"""Kernel Tuner's values of each parameter by those of the space"""
Measured = dict[str, Any]
"""What Kernel Tuner keeps of a measurement: parameters, times, and an error if there was one"""


class Strategy(Decider):
    """Searches a kernel's space by what a server knows of it.

    >>> strategy = Strategy(Client("127.0.0.1:7070"), target="this machine, gcc")
    >>> tune_kernel("add", source, n, arguments, parameters, lang="C", strategy=strategy)

    If the server keeps measurements, the first configuration is the one that is predicted to be the
    fastest, also by those of other users; what was measured is not suggested again. Of a space of
    more than 20,000 configurations, a part is drawn, the same for every run. If the server is away,
    there is one warning, and Kernel Tuner's genetic algorithm goes on from the best that was found.
    Ctrl-C ends a run with what was measured. An error that ends Kernel Tuner's other strategies,
    such as a wrong result, ends this one as well.

    With ``decide=True``, a decided configuration is the only one that is measured, and the only
    result if another process decided while this one searched. Without a decision, such as if the
    server is away, the search goes on for this process alone.

    Args:
        client: The server.
        target: What run times are measured on: device, compiler and flags. Never mix targets.
        kernel: The name under which measurements are kept; by default that of the kernel.
        instance: What is tuned; by default the problem size. Name it if arguments other than the
            problem size change run times.
        decide, on_away, group: As of a ``Decider``.
        options: Of ``Client.search``: ``other_targets``, ``all_other_targets``, ``seed``, and
            ``lease``, so that no two processes measure the same; its ``ttl`` must be longer than a
            measurement.

    Raises:
        ArgumentError: if an argument cannot be used; the message names it.
    """

    namespace = "kernel-tuner"

    def __init__(
        self,
        client: Client,
        target: str,
        *,
        kernel: str | None = None,
        instance: str | None = None,
        decide: bool = False,
        on_away: OnAway = "default",
        group: Group | None = None,
        **options: Any,
    ):
        # Refuses what a search would refuse only within the run.
        any_space = Space(kernel or "kernel", {"any": [0]}, instance=instance or "")
        client.search(any_space, target, **options)
        self._options: dict[str, Any] = {"target": target} | options
        fallback = self._options.setdefault("fallback", Fallback(f"{_FALLBACK} goes on"))
        super().__init__(
            client, target, decide=decide, on_away=on_away, group=group, fallback=fallback
        )
        self._kernel = kernel
        self._instance = instance

    def tune(
        self, searchspace: Searchspace, runner: Runner, tuning_options: Options
    ) -> list[Measured]:
        """Is called by Kernel Tuner, and returns the results of all measurements.

        Raises:
            ArgumentError: if the objective is not the shortest time.
        """
        objective = list(tuning_options.objective), list(tuning_options.objective_higher_is_better)
        if objective != (["time"], [False]):
            raise ArgumentError(f"objective is {tuning_options.objective}, expected time")
        parameters = searchspace.tune_params
        columns: Columns = {
            name: dict(zip(column_of(values), values, strict=True))
            for name, values in parameters.items()
        }
        space = self._space(searchspace, columns, runner)
        cost = CostFunc(searchspace, tuning_options, runner, snap=False)
        key = key_of_space(space, *map(_text_of, runner.kernel_source.kernel_sources))
        try:
            with self.giving_back():
                state, decided = self.decided(key, space.decoded)
                if decided is None:
                    results, search = self._searched(space, columns, cost)
                    if state == "claimed":
                        decided = self.agree_on_best(key, search)
                    if decided is None or (search.best and decided == search.best[0]):
                        return results
            # Kernel Tuner takes the fastest of the results, and has no budget left after a search.
            once = copy(tuning_options)
            once.budget = TuningBudget(max_fevals=1)
            return list(runner.run([_values(columns, decided)], once))
        except KeyboardInterrupt:
            return list(cost.results)

    def _searched(
        self, space: Space, columns: Columns, cost: CostFunc
    ) -> tuple[list[Measured], SpaceSearch]:
        search = self._client.search(space, **self._options)
        results: list[Measured] = cost.results
        try:
            for configuration in _proposals(search, "lease" in self._options):
                known = len(results)
                try:
                    cost(_values(columns, configuration))
                finally:  # the last measurement comes with the end of the budget
                    for result in results[known:]:
                        search.report(configuration, **_outcome(result))
        except StopCriterionReached:
            return results, search
        if not search.is_lost:
            return results, search
        options = cost.tuning_options
        # Where the search was, and not where a genetic algorithm begins.
        if search.best is not None:
            options.strategy_options["x0"] = _values(columns, search.best[0])
        found = strategy_map[_FALLBACK].tune(cost.searchspace, cost.runner, options)
        return results + list(found), search

    def _space(self, searchspace: Searchspace, columns: Columns, runner: Runner) -> Space:
        rows = list(dict.fromkeys(searchspace.list))
        if len(rows) > _CANDIDATES:
            # The same ones for every run, so that runs go on from each other.
            rows = random.Random(0).sample(rows, _CANDIDATES)
        name = runner.kernel_options.kernel_name if self._kernel is None else self._kernel
        size = runner.kernel_options.problem_size
        instance = _instance_of(size) if self._instance is None else self._instance
        numbered = {name: {own: one for one, own in each.items()} for name, each in columns.items()}
        configurations = [
            {name: each[own] for (name, each), own in zip(numbered.items(), row, strict=True)}
            for row in rows
        ]
        return Space.from_configs(name, configurations, instance=instance)


def _values(columns: Columns, configuration: dict[str, Value]) -> list[Any]:
    """Returns a configuration of the space as Kernel Tuner has it."""
    return [each[configuration[name]] for name, each in columns.items()]


def _proposals(search: SpaceSearch, is_leased: bool) -> Iterator[dict[str, Value]]:
    """What to measure: the predicted best, and then what a server suggests."""
    known = None if is_leased else search.predicted_best()
    if known is not None:
        yield known
    while (suggested := search.suggest()) or search.state == "all_leased":
        yield from suggested
        if not suggested:
            sleep(search.retry_after)


def _outcome(result: Measured) -> dict[str, Any]:
    """Returns what to report of a result, in which an error stands instead of the objective."""
    match result.get("__error__"):
        case None:
            repeats = max(1, len(result.get("times", ())))
            one = result_of(_MILLISECOND * result["time"], "crash", repeats)
            return (
                {"failure": one.failure}
                if one.failure
                else {"seconds": one.seconds, "repeats": repeats}
            )
        case CompilationFailedConfig() | InvalidConfig():
            return {"failure": "compile"}
        case _:
            return {"failure": "crash"}


def _text_of(source: object) -> str:
    """Returns the text of a source, or the name of a function that writes it."""
    if callable(source):
        return str(getattr(source, "__qualname__", ""))
    return str(get_kernel_string(source))


def _instance_of(problem_size: object) -> str:
    """Returns a problem size as text, such as ``512x512``; a function of parameters has none."""
    if callable(problem_size):
        return ""
    sizes = problem_size if isinstance(problem_size, tuple | list) else (problem_size,)
    return "x".join(map(str, sizes))
