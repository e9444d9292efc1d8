"""Autotuning with Triton that begins with what was measured before."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike
from triton.runtime.autotuner import Autotuner, Config
from triton.runtime.jit import JITFunction

from hlorank.checks.arguments import instance
from hlorank.tuners.proposals import Proposals, digest, result_of, row_of

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
    the arguments of ``Proposals``.
    """

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
            best = self.best(*kernel, [*map(_row, configs)])
            # The first one is what the author of a kernel trusts: it is measured whatever is known.
            return [configs[number] for number in dict.fromkeys([*best, 0])] if best else configs

        autotuner.early_config_prune = prune
        return autotuner

    def listener(
        self,
        *,
        fn: JITFunction,
        key: Sequence[object],
        configs_timings: Mapping[Config, ArrayLike],
        **_: object,
    ) -> None:
        """Reports the times of a run; Triton calls it, with times in milliseconds.

        Each is the median and other quantiles, infinite if the kernel does not compile or needs
        more than the device has; times from Triton's own cache are known already, and count once.
        """
        # A `do_bench` of the kernel may return a number, or an array.
        medians = {config: np.ravel(times)[0] for config, times in configs_timings.items()}
        measured = [(_row(config), result_of(time / 1e3)) for config, time in medians.items()]
        self.report(*_kernel(fn, key), measured)


def _key(autotuner: Autotuner, arguments: Mapping[str, object]) -> tuple[object, ...]:
    """Returns what Triton passes to listeners: values of the key, and dtypes of all arguments."""
    passed = {name: value for name, value in arguments.items() if name in autotuner.arg_names}
    dtypes = [str(each.dtype) for each in passed.values() if hasattr(each, "dtype")]
    return (*(passed[name] for name in autotuner.keys if name in passed), *dtypes)


def _kernel(function: JITFunction, key: Sequence[object]) -> tuple[str, str]:
    """Returns the name of a kernel, and what is tuned of it."""
    return f"triton.{function.__name__}", f"{tuple(key)} {digest(function.src)}"


def _row(config: Config) -> dict[str, float]:
    settings = ("num_warps", "num_stages", "num_ctas", "maxnreg", "ir_override")
    return row_of({**config.kwargs, **{name: getattr(config, name) for name in settings}})
