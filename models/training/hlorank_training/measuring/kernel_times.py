"""The run times of lone kernels in a file that grows by one line per kernel."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from hlorank_tune.measure.fusion.graph import FusionGraph, unpacked
from hlorank_tune.measure.fusion.kernels import UNLIMITED, Kernel, configuration
from hlorank_tune.measure.fusion.write import digest, lone_kernel, plain_kernel

TIMES = "times.jsonl"
"""Name of the file in a collection's folder ``kernels``."""
SHORTEST = 50.0
"""Nanoseconds below which a run time is not used, since files have whole nanoseconds."""


class KernelTimes:
    """Digests of kernels with the nanoseconds of ``LoneTimes``, or with an ``error``."""

    def __init__(self, path: Path):
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self.records: dict[str, dict[str, Any]] = {}
        for record in filter(None, map(_record, lines)):
            self.records[record["digest"]] = record

    def add(self, identity: str, times: dict[str, Any]) -> None:
        """Appends the times of a kernel, or its error."""
        self.records[identity] = {"digest": identity, **times}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(self.records[identity]) + "\n")


def _record(line: str) -> dict[str, Any] | None:
    """Returns a line's record; None if the line was cut off when a process was stopped."""
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        return None


def label(record: dict[str, Any]) -> float | None:
    """Returns nanoseconds: the minimum over the passes, with warm caches if inputs are large.

    None if the kernel was not timed, or is too short.
    """
    times = record.get("warm") or record.get("hot")
    return min(times) if times and min(times) >= SHORTEST else None


class ProgramKernels:
    """The distinct kernels of a program's configurations."""

    def __init__(self, data: Any):
        """``data`` is the ModuleTuningData of the program."""
        self._graph = FusionGraph(data.module)
        self._digests: dict[Kernel, str] = {}
        self.modules: dict[str, Any] = {}
        runs = [self._digests_of(run.module_config.fusion_config.fused) for run in data.runs]
        numbers = {identity: number for number, identity in enumerate(self.modules)}
        self.configurations = [[numbers[identity] for identity in run] for run in runs]
        """Positions in ``modules`` of the kernels of each configuration."""

    def plain_modules(self) -> Iterator[Any]:
        """Yields the kernels of ``modules`` as a model sees them, without a fusion around them."""
        kernels = {digest: kernel for kernel, digest in self._digests.items()}
        return (plain_kernel(self._graph, kernels[identity]) for identity in self.modules)

    def _digests_of(self, bits: bytes) -> list[str]:
        fused = unpacked(self._graph, bits)
        return list(self._identities(configuration(self._graph, fused, UNLIMITED).kernels))

    def _identities(self, kernels: Iterable[Kernel]) -> Iterator[str]:
        for kernel in kernels:
            if kernel not in self._digests:
                module = lone_kernel(self._graph, kernel)
                self._digests[kernel] = digest(module)
                self.modules[self._digests[kernel]] = module
            yield self._digests[kernel]
