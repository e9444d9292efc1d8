"""Helion's logs, which ``HELION_AUTOTUNE_LOG`` and ``HELION_AUTOTUNE_LOG_DETAILS`` ask for."""

import csv
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from helion import Config
from helion.autotuner.metrics import KernelMetadata

from hlorank import Result
from hlorank.tuners.rows import result_of

if TYPE_CHECKING:
    from helion.runtime.kernel import BoundKernel

_FAILURES = {"error": "compile", "timeout": "timeout", "accuracy_error": "wrong_result"}
"""What Helion's states say of a configuration. The others say nothing of it: that another process
of a distributed kernel failed, or that it was not measured."""
_TIMES = ("ok", "deduplicated")
_IDENTITY = ("kernel_name", "kernel_source", "input_shapes", "dtypes", "settings")


@dataclass(frozen=True)
class Run:
    """The measurements of one kernel on inputs of one kind."""

    identity: KernelMetadata
    configs: list[Config]
    results: list[Result]
    """What came of each"""


def read_log(base: str | Path) -> list[Run]:
    """Reads ``base.csv`` and ``base.meta.jsonl``; none if Helion found its result in a cache."""
    runs: dict[str, Run] = {}
    configs: dict[str, dict[str, Config]] = {}
    for line in _lines(Path(base).with_suffix(".meta.jsonl")):
        record = json.loads(line)
        identity = KernelMetadata(**{name: record[name] for name in _IDENTITY})
        runs.setdefault(record["run_id"], Run(identity, [], []))
        found = {key: Config.from_dict(each) for key, each in record["configs"].items()}
        configs.setdefault(record["run_id"], {}).update(found)
    for row in csv.DictReader(_lines(Path(base).with_suffix(".csv"))):
        config = configs.get(row["run_id"], {}).get(row["config_id"])
        result = _result(row)
        if config is not None and result is not None:
            runs[row["run_id"]].configs.append(config)
            runs[row["run_id"]].results.append(result)
    return [_repaired(run) for run in runs.values()]


def _repaired(run: Run) -> Run:
    """Drops failures of configurations that have a time, too: Helion measured an equal source."""
    pairs = list(zip(run.configs, run.results, strict=True))
    ran = [config for config, result in pairs if result.failure is None]
    kept = [(one, result) for one, result in pairs if result.failure is None or one not in ran]
    return Run(run.identity, [one for one, _ in kept], [result for _, result in kept])


def identity_of(kernel: "BoundKernel", args: Sequence[object]) -> KernelMetadata:
    """Returns what Helion's log says of a run, so that runs and logs share measurements."""
    tensors = [each for each in args if isinstance(each, torch.Tensor)]
    source = ""
    with suppress(OSError):
        source = kernel.kernel.kernel_source()
    return KernelMetadata(
        kernel_name=kernel.kernel.name,
        kernel_source=source,
        input_shapes=str([tuple(each.shape) for each in tensors]),
        dtypes=str([str(each.dtype) for each in tensors]),
        settings=kernel.settings.to_dict(),
    )


def space_of(identity: KernelMetadata) -> tuple[str, str]:
    """Returns the name of a space and its instance; the device is the target's."""
    instance = f"{identity.input_shapes} {identity.dtypes} {identity.run_id[:12]}"
    return f"helion.{identity.kernel_name}", instance


def _result(row: Mapping[str, str]) -> Result | None:
    """Returns what a line says; None for a state that says nothing of the configuration."""
    if row["status"] in _TIMES and row["perf_ms"]:
        return result_of(float(row["perf_ms"]) / 1e3)
    failure = _FAILURES.get(row["status"])
    return None if failure is None else Result(failure=failure)


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
