"""Autotuning with Triton that begins with what was measured before."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from math import inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from triton.runtime.autotuner import Autotuner, Config
from triton.runtime.jit import JITFunction

from hlorank.checks.arguments import instance
from hlorank.tuners.decider import Listed, key_of
from hlorank.tuners.proposals import Proposals, digest, result_of, row_of

_SETTINGS = ("kwargs", "num_warps", "num_stages", "num_ctas", "maxnreg")
Prune = Callable[..., Sequence[Config]]
"""An ``early_config_prune`` of Triton."""


class Pruner(Proposals):
    """Keeps the configurations that are fastest by what was measured, and reports new times.

    >>> pruner = hlorank.tuners.triton.Pruner(Client("127.0.0.1:7070"), "H100, Triton 3.9")
    >>> triton.knobs.autotuning.listener = pruner.listener
    >>> @pruner
    ... @triton.autotune(configs, key=["M", "N", "K"])
    ... @triton.jit
    ... def matmul(...): ...

    A kernel is known by its name and its source, and what is tuned by the values of its key. The
    first configuration of the list is always kept. If nothing is known, all of them are. It takes
    the arguments of ``Proposals``. With ``decide=True``, a decided configuration is taken without
    measuring, and the listener takes what the server decides; the default is the first one.
    """

    namespace = "triton"

    def __init__(self, *arguments: Any, **options: Any):
        super().__init__(*arguments, **options)
        self._claimed: dict[tuple[str, str], tuple[Listed[Config], Autotuner]] = {}

    def __call__(self, autotuner: Autotuner) -> Autotuner:
        """Sets what ``prune_configs_by["early_config_prune"]`` sets; one that is set runs first."""
        instance(autotuner, Autotuner, "autotuner", "what triton.autotune returns, right below")
        earlier: Prune | None = autotuner.early_config_prune

        def prune(
            configs: Sequence[Config], named_args: Mapping[str, object], **kwargs: object
        ) -> Sequence[Config]:
            if earlier is not None:
                configs = earlier(configs, named_args, **kwargs)
            # Triton measures nothing then, and tells no listener.
            if len(configs) < 2:
                return configs
            function = autotuner.fn
            while not isinstance(function, JITFunction):
                function = function.fn
            kernel = _kernel(function, _key(autotuner, {**named_args, **kwargs}))
            self._claimed.pop(kernel, None)  # of a run that raised
            # A decision must not name a file, as `ir_override` does.
            if not any(config.ir_override for config in configs):
                key = key_of(*kernel, sorted(map(str, configs)))
                listed = Listed(key, configs, _settings)
                state, config = self.decided(key, listed.read)
                if state in ("decided", "away"):
                    return [config or configs[0]]
                if state == "claimed":
                    self._claimed[kernel] = listed, autotuner
            best = self.best(*kernel, [*map(_row, configs)])
            # The first one is what the author of a kernel trusts: it is measured whatever is known.
            kept = [configs[number] for number in dict.fromkeys([*best, 0])] if best else configs
            if len(kept) == 1 and kernel in self._claimed:
                kept = [self.agree_on_one(self._claimed.pop(kernel)[0], kept[0], 0.0, 0)]
            return kept

        autotuner.early_config_prune = prune
        # Nothing calls the listener if a kernel raises while it is measured, or is only compiled.
        autotuner.run = self._giving_back(autotuner.run)
        autotuner.warmup = self._giving_back(autotuner.warmup)
        return autotuner

    def _giving_back(self, call: Callable[..., object]) -> Callable[..., object]:
        @wraps(call)
        def tuned(*arguments: object, **named: object) -> object:
            with self.giving_back():
                return call(*arguments, **named)

        return tuned

    def listener(
        self,
        *,
        fn: JITFunction,
        key: Sequence[object],
        configs_timings: Mapping[Config, ArrayLike],
        best_config: Config | None = None,
        **_: object,
    ) -> None:
        """Reports the times of a run; Triton calls it, with times in milliseconds.

        Each is the median and other quantiles, infinite if the kernel does not compile or needs
        more than the device has; times from Triton's own cache are known already, and count once.
        """
        # A `do_bench` of the kernel may return a number, or an array.
        medians = {config: np.ravel(times)[0] for config, times in configs_timings.items()}
        measured = [(_row(config), result_of(time / 1e3)) for config, time in medians.items()]
        kernel = _kernel(fn, key)
        claimed = self._claimed.pop(kernel, None)
        if claimed is not None:
            best = best_config or min(medians, key=medians.__getitem__)
            seconds = float(medians.get(best, inf)) / 1e3
            listed, autotuner = claimed
            chosen = self.agree_on_one(listed, best, seconds, len(medians))
            autotuner.cache[tuple(key)] = chosen
        self.report(*kernel, measured)


def _settings(config: Config) -> dict[str, Any]:
    """Returns what a decision says of a configuration, as JSON has it."""
    settings = {name: getattr(config, name) for name in _SETTINGS}
    found: dict[str, Any] = json.loads(json.dumps(settings, default=str))
    return found


def _key(autotuner: Autotuner, arguments: Mapping[str, object]) -> tuple[object, ...]:
    """Returns what Triton passes to listeners: values of the key, and dtypes of all arguments."""
    passed = {name: value for name, value in arguments.items() if name in autotuner.arg_names}
    dtypes = [str(each.dtype) for each in passed.values() if hasattr(each, "dtype")]
    return (*(passed[name] for name in autotuner.keys if name in passed), *dtypes)


def _kernel(function: JITFunction, key: Sequence[object]) -> tuple[str, str]:
    """Returns the name of a kernel, and what is tuned of it."""
    return f"triton.{function.__name__}", f"{tuple(key)} {digest(function.src)}"


def _row(config: Config) -> dict[str, float]:
    settings = (*_SETTINGS[1:], "ir_override")
    return row_of({**config.kwargs, **{name: getattr(config, name) for name in settings}})
