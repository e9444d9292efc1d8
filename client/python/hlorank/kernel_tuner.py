"""A strategy of Kernel Tuner that asks a server what to measure next, and reports the times."""

import random
import warnings
from collections.abc import Iterator
from typing import Any

from kernel_tuner.interface import strategy_map
from kernel_tuner.strategies.common import CostFunc
from kernel_tuner.util import CompilationFailedConfig, InvalidConfig, StopCriterionReached

from hlorank import AnswerError, ArgumentError, Client, RefusedError, Space, SpaceSearch

_FALLBACK = "genetic_algorithm"
"""The strategy of Kernel Tuner that goes on if the server is away."""
_CANDIDATES = 20_000
"""Maximum number of configurations that every call sends."""
_MILLISECOND = 1e-3


class Strategy:
    """Searches a kernel's space by what a server knows of it.

    >>> strategy = Strategy(Client("127.0.0.1:7070"), target="this machine, gcc")
    >>> tune_kernel("add", source, n, arguments, parameters, lang="C", strategy=strategy)

    If the server keeps measurements, the first configuration is the fastest one that is known, also
    of other users; what was measured is not measured again. Of a space of more than 20,000
    configurations, a part is drawn, the same for every run. If the server is away, there is one
    warning, and Kernel Tuner's genetic algorithm goes on from the best that was found. An error
    that ends Kernel Tuner's other strategies, such as a wrong result, ends this one as well.

    Args:
        client: The server.
        target: What run times are measured on: device, compiler and flags. Never mix targets.
        kernel: The name under which measurements are kept; by default that of the kernel.
        instance: What is tuned; by default the problem size. Name it if arguments other than the
            problem size change run times.
        options: Of ``Client.search``: ``other_targets``, ``all_other_targets``, ``seed``.
    """

    def __init__(
        self,
        client: Client,
        target: str,
        *,
        kernel: str | None = None,
        instance: str | None = None,
        **options: Any,
    ):
        self._client = client
        self._options = {"target": target} | options
        self._kernel = kernel
        self._instance = instance

    def tune(self, searchspace: Any, runner: Any, tuning_options: Any) -> list[dict[str, Any]]:
        """Is called by Kernel Tuner, and returns the results of all measurements.

        Raises:
            ArgumentError: if the objective is not the time, or a parameter is neither a number, a
                boolean nor text.
        """
        if list(tuning_options.objective) != ["time"]:
            raise ArgumentError(f"objective is {tuning_options.objective}, expected time")
        space = self._space(searchspace, runner.kernel_options)
        measuring = _Measuring(searchspace, runner, tuning_options)
        try:
            measuring.run(self._client.search(space, **self._options))
        except StopCriterionReached:
            pass
        except (RefusedError, AnswerError) as error:
            warnings.warn(f"hlorank: {error}; {_FALLBACK} goes on", stacklevel=2)
            return measuring.results + measuring.without_server()
        return measuring.results

    def _space(self, searchspace: Any, kernel_options: Any) -> Space:
        rows = searchspace.list
        if len(rows) > _CANDIDATES:
            # The same ones for every run, so that runs go on from each other.
            rows = random.Random(0).sample(rows, _CANDIDATES)
        name = kernel_options.kernel_name if self._kernel is None else self._kernel
        size = kernel_options.problem_size
        instance = _instance_of(size) if self._instance is None else self._instance
        configurations = [dict(zip(searchspace.tune_params, row, strict=True)) for row in rows]
        return Space.from_configs(name, configurations, instance=instance)


class _Measuring:
    """The measurements of one run."""

    def __init__(self, searchspace: Any, runner: Any, tuning_options: Any):
        self._arguments = (searchspace, runner, tuning_options)
        self._names = list(searchspace.tune_params)
        self._cost = CostFunc(searchspace, tuning_options, runner, snap=False)

    @property
    def results(self) -> list[dict[str, Any]]:
        """What Kernel Tuner knows of every configuration that was measured, in order."""
        return self._cost.results

    def run(self, search: SpaceSearch) -> None:
        """Measures until the budget is spent, or nothing is left to measure.

        Raises:
            StopCriterionReached: if the budget is spent.
            RefusedError: if the server is away.
        """
        for configuration in _proposals(search):
            known = len(self.results)
            try:
                self._cost([configuration[name] for name in self._names])
            finally:  # the last measurement comes with the end of the budget
                for result in self.results[known:]:
                    search.report(configuration, **_outcome(result))

    def without_server(self) -> list[dict[str, Any]]:
        """Goes on with a strategy of Kernel Tuner, from the best that was found."""
        times = [result for result in self.results if "__error__" not in result]
        if times:
            best = min(times, key=lambda result: result["time"])
            options = self._arguments[2].strategy_options
            options["x0"] = [best[name] for name in self._names]
        return strategy_map[_FALLBACK].tune(*self._arguments)


def _proposals(search: SpaceSearch) -> Iterator[dict[str, Any]]:
    """What to measure: the best that is known, and then what a server suggests."""
    known = search.predicted_best()
    if known is not None:
        yield known
    while suggested := search.suggest():
        yield from suggested


def _outcome(result: dict[str, Any]) -> dict[str, Any]:
    match result.get("__error__"):
        case None:
            repeats = max(1, len(result.get("times", ())))
            return {"seconds": _MILLISECOND * result["time"], "repeats": repeats}
        case CompilationFailedConfig() | InvalidConfig():
            return {"failure": "compile"}
        case _:
            return {"failure": "crash"}


def _instance_of(problem_size: Any) -> str:
    """Returns a problem size as text, such as ``512x512``; a function of parameters has none."""
    if callable(problem_size):
        return ""
    sizes = problem_size if isinstance(problem_size, tuple | list) else (problem_size,)
    return "x".join(map(str, sizes))
