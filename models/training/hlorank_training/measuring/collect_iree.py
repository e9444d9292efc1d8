"""Measures the tiles of IREE's dispatches: one file per dispatch, resumable.

Tiles are measured on one processor, and compiled on the others at the same time. While nothing is
measured, the measuring processor compiles too.
"""

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from queue import Empty, Queue
from typing import Any
from zlib import crc32

import jax
import numpy as np
from hlorank_tune.iree.compiler import STABLEHLO_FLAGS, CompileError, CompileProcess
from hlorank_tune.iree.dispatch import Dispatch, find_dispatches, function_of, with_tile
from hlorank_tune.iree.hlo import kernel_hlo
from hlorank_tune.iree.hlo_text import UnsupportedDispatch
from hlorank_tune.iree.runtime import DispatchLoader, harness
from hlorank_tune.iree.tiles import TileSizes
from hlorank_tune.measure.atomic_files import read_json, write_atomically
from hlorank_tune.measure.host import Measured, measure_programs
from hlorank_tune.measure.rounds import Protocol, Timing
from hlorank_tune.measure.schema import HloModuleProto, Tile, TuningData, tile_tuning_data
from hlorank_tune.measure.workers import Worker, WorkerError
from jaxlib import _hlo
from tqdm import tqdm

from hlorank_training.measuring.provenance import Collection, record
from hlorank_training.measuring.random_kernels import RandomKernel, random_kernels
from hlorank_training.measuring.zoo import Network, networks

PER_FAMILY = 2

SLOW = {
    "plain_nchw",
    "plain_nchw_reversed",
    "residual_nhwc_reversed",
    "shuffle",
    "vision_nchw",
}
"""Networks that take 0.3 to 1.4 s with the default tiles, too long to measure many tiles."""


def training_programs() -> list[Network]:
    """Returns the first networks of every family, without training steps."""
    taken: dict[str, list[Network]] = {}
    for network in networks():
        chosen = taken.setdefault(network.family, [])
        if not network.train and network.name not in SLOW and len(chosen) < PER_FAMILY:
            chosen.append(network)
    return [network for chosen in taken.values() for network in chosen]


PROTOCOL = Protocol(warmups=1, rounds=8, most_rounds=48, seconds=0.4, tries=20)
MICROSECONDS = (3.0, 30_000.0)
"""Run times of the default between which a dispatch is measured."""
COMPILE_WORKER = "hlorank_tune.iree.compiler"
SECONDS = 4.0
"""How long a tile may compile. A tile that takes longer is a row without a run time."""
_LATE = 3
"""Tiles of a dispatch that time out before the rest of them is left out."""
_KERNELS_PER_NETWORK = 20
"""Random kernels between two networks."""
_AHEAD = 8
"""Dispatches that are compiled before they are measured."""


@dataclass(frozen=True)
class TileCount:
    """Limits of the candidates."""

    tiles: int = 16
    """Tiles of a dispatch, the default's included; besides them, the compiler's own choice."""


@dataclass(frozen=True)
class Job:
    """A dispatch with compiled tiles."""

    name: str
    family: str
    dispatch: Dispatch
    graph: Any
    """HloModuleProto of the dispatch."""
    tiles: list[TileSizes]
    modules: list[bytes | str]
    """The compiler's choice first, then a module or a reason for every tile."""

    def bounds(self, module: int) -> Tile:
        """Returns the tile of a module other than the first, as models see it."""
        assert self.dispatch.space is not None
        return self.dispatch.space.tile(self.tiles[module - 1])


Prepared = tuple[str, list[Job]]
"""The name of a kernel, and its dispatches."""


class Progress:
    """What a folder has: kernels whose dispatches are measured, and the keys of these."""

    def __init__(self, collection: Collection):
        self._file = collection.folder / "kernels.txt"
        done = self._file.read_text(encoding="utf-8").split() if self._file.exists() else []
        self._kernels = set(done)
        records = collection.folder.glob("*.json")
        self.keys = {read_json(path).get("key") for path in records}

    def has(self, kernel: str) -> bool:
        """Returns whether all dispatches of a kernel are measured."""
        return kernel in self._kernels

    def finish(self, kernel: str) -> None:
        """Notes that all dispatches of a kernel are measured."""
        with self._file.open("a", encoding="utf-8") as file:
            file.write(kernel + "\n")


class Preparation:
    """Compiles the dispatches of kernels, for one thread after another."""

    def __init__(self, kernels: Iterator[RandomKernel], progress: Progress):
        self._kernels = kernels
        self._progress = progress
        self._lock = threading.Lock()

    def next(self, compiler: CompileProcess) -> Prepared | None:
        """Returns the next kernel and its dispatches; None after the last one."""
        with self._lock:
            kernel = next((k for k in self._kernels if not self._progress.has(k.name)), None)
        if kernel is None:
            return None
        jobs = []
        for number, dispatch in enumerate(self._new_dispatches(kernel)):
            name = f"{kernel.name}.{number}" if number else kernel.name
            try:
                jobs.append(_job(name, kernel.family, dispatch, compiler))
            except UnsupportedDispatch as error:
                tqdm.write(f"{name}: {error}")
        return kernel.name, jobs

    def _new_dispatches(self, kernel: RandomKernel) -> list[Dispatch]:
        try:
            text = jax.jit(kernel.function).lower(*kernel.arguments).as_text()
            found = find_dispatches(text, STABLEHLO_FLAGS)
        except CompileError as error:
            tqdm.write(f"{kernel.name}: {error}")
            return []
        new = []
        with self._lock:
            for dispatch in found:
                if dispatch.space is not None and dispatch.key not in self._progress.keys:
                    self._progress.keys.add(dispatch.key)
                    new.append(dispatch)
        return new


def collect_iree(folder: Path, minutes: float, protocol: Protocol) -> None:
    """Measures dispatches until the time limit; skips kernels that were measured before."""
    packages = ("jax", "iree-base-compiler", "iree-base-runtime")
    collection = Collection(folder, "tile", protocol, TileCount(), "iree:cpu", packages)
    progress = Progress(collection)
    deadline = time.monotonic() + 60 * minutes
    preparation = Preparation(kernels_to_measure(), progress)
    ready: Queue[Prepared | None] = Queue(_AHEAD)
    with ExitStack() as stack:
        measuring = [max(os.sched_getaffinity(0))]
        measurer = stack.enter_context(Worker("hlorank_tune.measure.host", measuring))
        others = sorted(os.sched_getaffinity(0) - set(measuring))
        here, *there = (
            CompileProcess(stack.enter_context(Worker(COMPILE_WORKER, where)), SECONDS)
            for where in (measuring, others)
            if where
        )
        if there:
            os.sched_setaffinity(0, others)
            threading.Thread(
                target=_prepare, args=(preparation, there[0], ready), daemon=True
            ).start()
        bar = stack.enter_context(tqdm(desc="dispatches"))
        while time.monotonic() < deadline:
            try:
                prepared = ready.get_nowait()
            except Empty:
                prepared = preparation.next(here)
            if prepared is None:
                break
            kernel, jobs = prepared
            for job in jobs:
                bar.update(_measure(job, measurer, protocol, collection))
            progress.finish(kernel)


def kernels_to_measure() -> Iterator[RandomKernel]:
    """Yields the networks, and random kernels between them, so that both grow with the time."""
    networks = (
        RandomKernel(n.name, f"network_{n.family}", n.function(), tuple(n.arguments()))
        for n in training_programs()
    )
    for number, kernel in enumerate(random_kernels()):
        yield kernel
        if number % _KERNELS_PER_NETWORK == 0:
            yield from islice(networks, 1)


def _prepare(preparation: Preparation, compiler: CompileProcess, ready: Queue) -> None:
    prepared: Prepared | None = "", []
    while prepared is not None:
        prepared = preparation.next(compiler)
        ready.put(prepared)


def _job(name: str, family: str, dispatch: Dispatch, compiler: CompileProcess) -> Job:
    assert dispatch.space is not None
    random = np.random.default_rng(crc32(name.encode()))
    tiles = [dispatch.space.default, *dispatch.space.draw(random, TileCount.tiles - 1)]
    graph = _graph(name, dispatch)
    texts = [dispatch.configured, *(with_tile(dispatch, tile) for tile in tiles)]
    modules = _compiled(compiler, [harness(dispatch, text) for text in texts])
    return Job(name, family, dispatch, graph, tiles, modules)


def _graph(name: str, dispatch: Dispatch) -> Any:
    with function_of(dispatch.source) as function:
        text = kernel_hlo(function, name)
    module = _hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
    return HloModuleProto.FromString(module)


def _compiled(compiler: CompileProcess, texts: Sequence[str]) -> list[bytes | str]:
    """Compiles tiles; returns the reasons of those that do not compile."""
    modules: list[bytes | str] = []
    for text in texts:
        late = sum(isinstance(module, str) and "timed out" in module for module in modules)
        if late >= _LATE:
            modules.append("not compiled, since other tiles timed out")
            continue
        try:
            modules.append(compiler.compile(text))
        except CompileError as error:
            modules.append(str(error))
    return modules


def _measure(job: Job, worker: Worker, protocol: Protocol, collection: Collection) -> int:
    """Measures a dispatch and writes its file; returns 1 if it has run times."""
    compiled = [isinstance(module, bytes) for module in job.modules]
    if not compiled[0] or sum(compiled) < 4:
        return 0
    try:
        loader = DispatchLoader(job.dispatch.bindings)
        measured = measure_programs(worker, loader, job.modules, protocol)
    except WorkerError as error:
        tqdm.write(f"{job.name}: {error}")
        return 0
    if not MICROSECONDS[0] < measured.nanoseconds[0] / 1e3 < MICROSECONDS[1]:
        return 0
    _write(job, measured, collection)
    return 1


def _write(job: Job, measured: Measured, collection: Collection) -> None:
    """Writes the tuning file of a dispatch and its record; tiles that do not work are in it."""
    errors = measured.errors
    passes = np.array([measured.first, measured.second])
    works = [i for i in range(1, len(errors)) if np.isfinite(passes[:, i]).all()]
    tiles = [job.bounds(i) for i in works]
    timing = Timing(passes[:1, works], passes[1:, works], measured.repeated, measured.loaded)
    data = TuningData(modules=[tile_tuning_data(job.graph, tiles, timing.label())])
    choice = float(passes[:, 0].min())
    details = {
        "compiler_default_nanoseconds": round(choice),
        "default_over_best": choice / float(timing.label().min()),
        "dispatch": job.dispatch.name,
        "pipeline": job.dispatch.pipeline,
        "key": job.dispatch.key,
        "refused": [
            [asdict(job.tiles[i - 1]), errors[i]] for i in range(1, len(errors)) if errors[i]
        ],
        "rounds_of_both_passes": measured.rounds,
    }
    record(collection, job.name, job.family, timing, details)
    write_atomically(collection.path(job.name), data.SerializeToString())
