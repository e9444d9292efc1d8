"""Searches by the strategies of Kernel Tuner, in its simulation mode."""

import contextlib
import io
import json
import random
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import kernel_tuner
import numpy as np

from measured_spaces import BUDGET, Space

_KERNEL = "kernel"
_PROBLEM_SIZE = (1,)
_FOLDER = tempfile.TemporaryDirectory()


def search(strategy: object, space: Space, seed: int, budget: int = BUDGET) -> list[int]:
    """The distinct configurations that a strategy, or one by its name, measures, in order."""
    random.seed(seed)
    np.random.seed(seed)

    # Kernel Tuner takes a restriction apart that is a lambda, and cannot read this one.
    def is_valid(parameters: dict[str, int]) -> bool:
        return tuple(parameters[name] for name in space.columns) in space.number

    with _silence():
        results, _ = kernel_tuner.tune_kernel(
            _KERNEL,
            f"__global__ void {_KERNEL}() {{}}",
            _PROBLEM_SIZE,
            [],
            space.values,
            lang="CUDA",
            block_size_names=space.columns[:1],
            restrictions=is_valid,
            strategy=strategy,
            strategy_options={"max_fevals": budget},
            simulation_mode=True,
            cache=str(_cache(space)),
        )
    numbers = [space.number[tuple(result[name] for name in space.columns)] for result in results]
    return list(dict.fromkeys(numbers))


def _cache(space: Space) -> Path:
    """Writes the file from which Kernel Tuner reads the time of every configuration."""
    path = Path(_FOLDER.name) / f"{space.kernel}.{space.gpu}.json"
    if not path.exists():
        cache = {
            "device_name": space.gpu,
            "kernel_name": _KERNEL,
            "problem_size": _PROBLEM_SIZE,
            "tune_params_keys": space.columns,
            "tune_params": space.values,
            "objective": "time",
            "cache": {",".join(map(str, key)): entry for key, entry in _entries(space)},
        }
        path.write_text(json.dumps(cache))
    return path


def _entries(space: Space) -> Iterator[tuple[tuple[int, ...], dict]]:
    for parameters, seconds in zip(space.number, space.seconds.tolist(), strict=True):
        milliseconds = 1e3 * seconds if np.isfinite(seconds) else "RuntimeFailedConfig"
        named = dict(zip(space.columns, parameters, strict=True))
        yield parameters, named | {"time": milliseconds}


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    nowhere = io.StringIO()
    with (
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        yield
