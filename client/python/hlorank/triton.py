"""Autotuning with Triton that begins with what was measured before."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from triton.runtime.autotuner import Autotuner, Config
from triton.runtime.jit import JITFunction

from hlorank.optional_server import OptionalServer
from hlorank.tuner_rows import digest, outcome_of, row_of

Prune = Callable[..., Sequence[Config]]
"""An ``early_config_prune`` of Triton."""


class Pruner(OptionalServer):
    """Keeps the configurations that are fastest by what was measured, and reports new times.

    >>> pruner = hlorank.triton.Pruner(Client("127.0.0.1:7070"), "H100, Triton 3.9")
    >>> triton.knobs.autotuning.listener = pruner.listener
    >>> @pruner
    ... @triton.autotune(configs, key=["M", "N", "K"])
    ... @triton.jit
    ... def matmul(...): ...

    A kernel is known by its name and its source, and what is tuned by the values of its key. The
    first configuration of the list is always kept. If nothing is known, all of them are. It takes
    the arguments of ``OptionalServer``.
    """

    def __call__(self, autotuner: Autotuner) -> Autotuner:
        """Sets what ``prune_configs_by["early_config_prune"]`` sets; one that is set runs first."""
        earlier: Prune | None = autotuner.early_config_prune

        def prune(
            configs: Sequence[Config], named_args: Mapping[str, Any], **kwargs: Any
        ) -> Sequence[Config]:
            if earlier is not None:
                configs = earlier(configs, named_args, **kwargs)
            return self._kept(autotuner, configs, {**named_args, **kwargs})

        autotuner.early_config_prune = prune
        return autotuner

    def listener(
        self,
        *,
        fn: JITFunction,
        key: Sequence[Any],
        best_config: Config,
        configs_timings: Mapping[Config, Any],
        duration: float | None,
        cache_hit: bool,
    ) -> None:
        """Reports the times of a run; Triton calls it, with times in milliseconds."""
        measured = [
            (_row(config), outcome_of(_milliseconds(timing)))
            for config, timing in configs_timings.items()
        ]
        self.report(_name(fn), _instance(fn, key), measured)

    def _kept(
        self, autotuner: Autotuner, configs: Sequence[Config], arguments: Mapping[str, Any]
    ) -> Sequence[Config]:
        if len(configs) < 2:
            return configs
        function = _function(autotuner)
        key = _key(autotuner, arguments)
        best = self.best(_name(function), _instance(function, key), [*map(_row, configs)])
        return [configs[number] for number in dict.fromkeys([*best, 0])] if best else configs


def _function(autotuner: Autotuner) -> JITFunction:
    function = autotuner.fn
    while not isinstance(function, JITFunction):
        function = function.fn
    return function


def _key(autotuner: Autotuner, arguments: Mapping[str, Any]) -> tuple[Any, ...]:
    """Returns what Triton passes to listeners: values of the key, and dtypes of all arguments."""
    passed = {name: value for name, value in arguments.items() if name in autotuner.arg_names}
    dtypes = _dtypes(passed.values())
    return (*(passed[name] for name in autotuner.keys if name in passed), *dtypes)


def _dtypes(arguments: Iterable[Any]) -> list[str]:
    return [str(each.dtype) for each in arguments if hasattr(each, "dtype")]


def _name(function: JITFunction) -> str:
    return f"triton.{function.__name__}"


def _instance(function: JITFunction, key: Sequence[Any]) -> str:
    return f"{tuple(key)} {digest(function.src)}"


def _row(config: Config) -> dict[str, float]:
    settings = ("num_warps", "num_stages", "num_ctas", "maxnreg")
    return row_of({**config.kwargs, **{name: getattr(config, name) for name in settings}})


def _milliseconds(timing: Any) -> float:
    return timing[0] if isinstance(timing, Sequence) else timing
