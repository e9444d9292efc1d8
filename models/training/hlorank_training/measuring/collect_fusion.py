"""Measures the run times of fusions: programs, and every kernel alone. Resumable.

A folder has ``programs`` with one ModuleTuningData per program, whose configurations are bits, and
``kernels`` with one TuningData per program, a ModuleTuningData per kernel.
"""

import time
from pathlib import Path
from typing import Any

from hlorank_tune.measure.atomic_files import write_atomically, write_json
from hlorank_tune.measure.execute import backend
from hlorank_tune.measure.fusion.graph import packed
from hlorank_tune.measure.rounds import Protocol
from hlorank_tune.measure.schema import ModuleTuningData, TuningData
from hlorank_tune.measure.workers import Worker, WorkerError
from tqdm import tqdm

from hlorank_training.measuring.fused_programs import (
    FusionLimits,
    MeasuredProgram,
    ProgramError,
    measure_program,
)
from hlorank_training.measuring.kernel_times import TIMES, KernelTimes, ProgramKernels, label
from hlorank_training.measuring.provenance import Collection, record
from hlorank_training.measuring.zoo import Network, fusion_programs

LIMITS = FusionLimits()
PROTOCOL = Protocol(warmups=1, rounds=5, most_rounds=24, seconds=1.0, tries=2, clock="process")

WORKER = "hlorank_training.measuring.lone_kernels"
_KERNEL_SECONDS = 60.0
"""How long a kernel may compile and run."""


def collect_fusion(
    folder: Path,
    minutes: float,
    protocol: Protocol = PROTOCOL,
    limits: FusionLimits = LIMITS,
) -> None:
    """Measures programs and their kernels until the time limit; skips what files have."""
    collecting = _Collecting(folder, protocol, limits, time.monotonic() + 60 * minutes)
    with Worker(WORKER) as worker, tqdm(fusion_programs(), desc="programs") as programs:
        for network in programs:
            programs.set_postfix_str(f"{len(collecting.times.records):,} kernels: {network.name}")
            collecting.collect(network, worker)
            if collecting.is_over():
                break


class _Collecting:
    def __init__(self, folder: Path, protocol: Protocol, limits: FusionLimits, end: float):
        self._programs = Collection(folder / "programs", "fusion", protocol, limits, backend())
        self._kernels = folder / "kernels"
        self.times = KernelTimes(self._kernels / TIMES)
        self._end = end

    def is_over(self) -> bool:
        """Returns whether the time limit is reached."""
        return time.monotonic() > self._end

    def collect(self, network: Network, worker: Worker) -> None:
        """Measures a program, then its kernels; a program that does not work is skipped."""
        if self.is_over() or (self._kernels / f"{network.name}.pb").exists():
            return
        try:
            if not self._programs.has(network.name):
                self._measure(network)
        except (ProgramError, WorkerError) as error:
            tqdm.write(f"{network.name}: {error}")
            return
        self._time_kernels(network, worker)

    def _measure(self, network: Network) -> None:
        begin = time.monotonic()
        measured = measure_program(network, self._programs.protocol, self._programs.limits)
        timing = measured.timing
        details = {
            **measured.references,
            "kinds": [drawn.kind for drawn in measured.drawn],
            "first_pass": timing.first[0].tolist(),
            "second_pass": timing.second[0].tolist(),
            "rounds_of_both_passes": measured.rounds,
            "refused": measured.refused,
            "slots": len(measured.prepared.graph.slots),
            "seconds": time.monotonic() - begin,
        }
        record(self._programs, network.name, network.family, timing, details)
        data = program_data(measured)
        write_atomically(self._programs.path(network.name), data.SerializeToString())

    def _time_kernels(self, network: Network, worker: Worker) -> None:
        """Times the kernels of a program; their file is written after the last one."""
        content = self._programs.path(network.name).read_bytes()
        kernels = ProgramKernels(ModuleTuningData.FromString(content))
        for identity, module in tqdm(kernels.modules.items(), network.name, leave=False):
            if self.is_over():
                return
            if identity not in self.times.records:
                self.times.add(identity, time_alone(module, worker))
        records = [self.times.records[identity] for identity in kernels.modules]
        described = {"name": network.name, "family": network.family, "kernels": records}
        described["configurations"] = kernels.configurations
        write_json(self._kernels / f"{network.name}.json", described)
        data = kernel_data(kernels, records)
        write_atomically(self._kernels / f"{network.name}.pb", data.SerializeToString())


def time_alone(kernel: Any, worker: Worker) -> dict[str, Any]:
    """Returns the times of a lone kernel; one that ends the process has an ``error``."""
    try:
        worker.send(kernel.SerializeToString())
        return worker.receive(_KERNEL_SECONDS)
    except WorkerError as error:
        return {"error": f"the compiler {error}"}


def program_data(measured: MeasuredProgram) -> Any:
    """Returns the ModuleTuningData of a program; the first configuration is the compiler's."""
    graph = measured.prepared.graph
    data = ModuleTuningData()
    data.module.CopyFrom(graph.module)
    data.config_index_to_node.extend(graph.slot_numbers)
    nanoseconds = measured.timing.label()
    for index, (drawn, taken) in enumerate(zip(measured.drawn, nanoseconds, strict=True)):
        run = data.runs.add(is_default=index == 0)
        run.profile.compute_time_ns = int(taken)
        run.module_config.fusion_config.fused = packed(graph, drawn.configuration.fused)
    return data


def kernel_data(kernels: ProgramKernels, records: list[dict[str, Any]]) -> Any:
    """Returns the TuningData of the kernels that have a run time."""
    data = TuningData()
    for module, one in zip(kernels.modules.values(), records, strict=True):
        if (nanoseconds := label(one)) is not None:
            kernel = data.modules.add(fingerprint=int(one["digest"][:16], 16))
            kernel.module.CopyFrom(module)
            run = kernel.runs.add(is_default=True)
            run.op_config.SetInParent()
            run.profile.compute_time_ns = round(nanoseconds)
    return data
