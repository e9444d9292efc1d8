"""Measures the tiles of IREE's dispatches: one file per dispatch, resumable.

Tiles are measured on one processor, and compiled on the others at the same time. While nothing is
measured, the measuring processor compiles too.
"""

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, Queue
from zlib import crc32

import jax
import numpy as np
from hlorank.iree.compile_worker import Compiler
from hlorank.iree.compiler import FLAGS, STABLEHLO, CompileError
from hlorank.iree.dispatch import Dispatch, find_dispatches, with_tile
from hlorank.iree.harness import harness
from hlorank.iree.measure import Measured, measure_modules
from hlorank.iree.runtime import DispatchSubject
from hlorank.iree.tiles import TileSizes
from hlorank.iree.workers import Worker, WorkerError
from hlorank.measure.atomic_files import write_json
from hlorank.measure.rounds import Protocol
from tqdm import tqdm

from hlorank_training.measuring.random_kernels import RandomKernel, random_kernels

TILES = 16
"""Tiles of a dispatch, besides the compiler's own choice."""
MICROSECONDS = (3.0, 30_000.0)
"""Run times of the default between which a dispatch is measured."""
SECONDS = 4.0
"""How long a tile may compile. A tile that takes longer is a row without a run time."""
_LATE = 3
"""Tiles of a dispatch that time out before the rest of them is left out."""
_AHEAD = 8
"""Dispatches that are compiled before they are measured."""


@dataclass(frozen=True)
class Job:
    """A dispatch with compiled tiles."""

    name: str
    family: str
    dispatch: Dispatch
    tiles: list[TileSizes]
    modules: list[bytes | str]
    """The compiler's choice first, then a module or a reason for every tile."""


class IreeCollection:
    """A folder of measured dispatches."""

    def __init__(self, folder: Path):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._done_file = folder / "done.txt"
        done = self._done_file.read_text().split() if self._done_file.exists() else []
        self._kernels = set(done)
        self.keys = {path.stem.rsplit("-", 1)[1] for path in folder.glob("*.json")}

    def has(self, kernel: str) -> bool:
        """Returns whether a kernel was prepared by an earlier run."""
        return kernel in self._kernels

    def finish(self, kernel: str) -> None:
        """Notes that all dispatches of a kernel are written."""
        with self._done_file.open("a") as file:
            file.write(kernel + "\n")


class Preparation:
    """Compiles the dispatches of kernels, for one thread after another."""

    def __init__(self, kernels: Iterator[RandomKernel], collection: IreeCollection):
        self._kernels, self._collection = kernels, collection
        self._lock = threading.Lock()

    def next(self, compiler: Compiler) -> list[Job] | None:
        """Returns the dispatches of the next kernel; None after the last one."""
        with self._lock:
            kernel = next((k for k in self._kernels if not self._collection.has(k.name)), None)
        if kernel is None:
            return None
        jobs = []
        for number, dispatch in enumerate(self._new_dispatches(kernel)):
            name = f"{kernel.name}.{number}" if number else kernel.name
            jobs.append(_job(name, kernel.family, dispatch, compiler))
        return jobs

    def _new_dispatches(self, kernel: RandomKernel) -> list[Dispatch]:
        try:
            text = jax.jit(kernel.function).lower(*kernel.arguments).as_text()
            found = find_dispatches(text, (*FLAGS, STABLEHLO))
        except CompileError as error:
            tqdm.write(f"{kernel.name}: {error}")
            return []
        new = []
        with self._lock:
            for dispatch in found:
                if dispatch.space is not None and dispatch.key[:16] not in self._collection.keys:
                    self._collection.keys.add(dispatch.key[:16])
                    new.append(dispatch)
        return new


def collect_iree(folder: Path, minutes: float, protocol: Protocol, kernels=None) -> None:
    """Measures dispatches until the time limit; skips kernels that were measured before."""
    collection = IreeCollection(folder)
    mine = sorted(os.sched_getaffinity(0))
    measuring, others = mine[-1:], mine[:-1]
    deadline = time.monotonic() + 60 * minutes
    preparation = Preparation(iter(kernels or random_kernels()), collection)
    ready: Queue[list[Job] | None] = Queue(_AHEAD)
    with ExitStack() as stack:
        measurer = stack.enter_context(Worker("hlorank.iree.measure", measuring))
        here = Compiler(
            stack.enter_context(Worker("hlorank.iree.compile_worker", measuring)), SECONDS
        )
        if others:
            os.sched_setaffinity(0, others)
            there = Compiler(
                stack.enter_context(Worker("hlorank.iree.compile_worker", others)), SECONDS
            )
            threading.Thread(target=_prepare, args=(preparation, there, ready), daemon=True).start()
        bar = stack.enter_context(tqdm(desc="dispatches"))
        while time.monotonic() < deadline:
            try:
                jobs = ready.get_nowait()
            except Empty:
                jobs = preparation.next(here)
            if jobs is None:
                break
            for job in jobs:
                bar.update(_measure(job, measurer, protocol, collection))
            if jobs:
                collection.finish(jobs[0].name)


def _prepare(preparation: Preparation, compiler: Compiler, ready: Queue) -> None:
    jobs: list[Job] | None = []
    while jobs is not None:
        jobs = preparation.next(compiler)
        ready.put(jobs)


def _job(name: str, family: str, dispatch: Dispatch, compiler: Compiler) -> Job:
    assert dispatch.space is not None
    random = np.random.default_rng(crc32(name.encode()))
    tiles = [dispatch.space.default, *dispatch.space.draw(random, TILES - 1)]
    texts = [dispatch.configured, *(with_tile(dispatch, tile) for tile in tiles)]
    modules = _compiled(compiler, [harness(dispatch, text) for text in texts])
    return Job(name, family, dispatch, tiles, modules)


def _compiled(compiler: Compiler, texts: Sequence[str]) -> list[bytes | str]:
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


def _measure(job: Job, worker: Worker, protocol: Protocol, collection: IreeCollection) -> int:
    """Measures a dispatch and writes its file; returns 1 if it has run times."""
    compiled = [i for i, module in enumerate(job.modules) if isinstance(module, bytes)]
    if 0 not in compiled or len(compiled) < 4:
        return 0
    try:
        modules = [job.modules[i] for i in compiled]
        measured = measure_modules(worker, DispatchSubject(job.dispatch.bindings), modules, protocol)
    except WorkerError as error:
        tqdm.write(f"{job.name}: {error}")
        return 0
    if not MICROSECONDS[0] < measured.nanoseconds[0] / 1e3 < MICROSECONDS[1]:
        return 0
    _write(job, compiled, measured, collection)
    return 1


def _write(
    job: Job, compiled: Sequence[int], measured: Measured, collection: IreeCollection
) -> None:
    errors = ["" if isinstance(module, bytes) else module for module in job.modules]
    first, second = np.full((2, len(errors)), np.nan)
    first[compiled], second[compiled] = measured.first, measured.second
    for i, error in zip(compiled, measured.errors, strict=True):
        errors[i] = error
    key = job.dispatch.key[:16]
    content = {
        "name": job.name,
        "family": job.family,
        "dispatch": job.dispatch.name,
        "pipeline": job.dispatch.pipeline,
        "source": job.dispatch.source,
        "tiles": [[t.distribution, t.vector, t.reduction] for t in job.tiles],
        "loops": [[loop.extent, loop.is_reduction] for loop in job.dispatch.space.loops],
        "output": job.dispatch.space.output,
        "first": [None if np.isnan(x) else round(x, 1) for x in first.tolist()],
        "second": [None if np.isnan(x) else round(x, 1) for x in second.tolist()],
        "errors": errors,
        "rounds": [measured.rounds, measured.repeated, measured.loaded],
        "time": time.time(),
    }
    write_json(collection.folder / f"{job.name}-{key}.json", content)
