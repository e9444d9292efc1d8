"""Measures tiles of Triton kernels on the GPU at hand: one TuningData file per kernel, resumable.

Processes compile the tiles of all variants first, into Triton's cache. Then every kernel is
measured as launches in a CUDA graph, without the time that Python needs for a launch.
"""

import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from hlorank_tune.measure.atomic_files import write_atomically
from hlorank_tune.measure.rounds import Protocol, Timing
from hlorank_tune.measure.schema import HloModuleProto, TuningData
from hlorank_tune.measure.tuning_data import tile_tuning_data
from tqdm import tqdm
from triton.errors import TritonError

from hlorank_training.measuring.provenance import Collection, record
from hlorank_training.measuring.triton import kernels
from hlorank_training.measuring.triton.computations import expected, lowered
from hlorank_training.measuring.triton.subjects import (
    Choice,
    Family,
    Subject,
    Variant,
    choices,
    families,
    pool,
    subjects,
)

PROTOCOL = Protocol(warmups=2, rounds=4, most_rounds=4, seconds=0.0)
"""Rounds are replays of a CUDA graph."""
KERNELS = 1440
"""Kernels that are measured if the time allows it."""
TOLERANCE = {"float16": 1e-2, "bfloat16": 3e-2, "float32": 5e-3}
"""Largest difference from PyTorch, relative to the norm; products of float32 use tf32."""
REPLAY_SECONDS = 4e-4
"""Approximate duration of a replay."""
LAUNCHES = (2, 100)
"""Least and most launches of a replay."""
SLOWEST = 0.03
"""Seconds of one launch from which a tile is left out."""
_FEWEST = 8
"""Tiles with run times that a kernel needs."""


@dataclass(frozen=True)
class TileCount:
    """Limits of the candidates."""

    tiles: int = 24
    """Tiles of a kernel, the default's included."""


class TileError(Exception):
    """A tile that does not run, or is wrong or slow."""


def collect_triton(folder: Path, minutes: float, protocol: Protocol = PROTOCOL) -> None:
    """Measures kernels until the time limit; skips kernels that were measured before."""
    deadline = time.monotonic() + 60 * minutes
    source = f"triton:{torch.cuda.get_device_name()}"
    packages = ("triton", "torch", "jax", "jaxlib")
    collection = Collection(folder, "tile", protocol, TileCount(), source, packages)
    chosen = list(islice(subjects(), KERNELS))
    compile_all()
    with tqdm(chosen, desc="kernels", mininterval=10) as bar:
        for subject, kind in bar:
            if time.monotonic() > deadline:
                break
            if not collection.has(subject.name):
                _collect(subject, kind, collection)


def compile_all() -> None:
    """Compiles the choices of all variants in processes, one per processor."""
    jobs = [
        (variant, choice)
        for kind in families()
        for variant in kind.variants
        for choice in pool(variant, kind)
    ]
    # A process that was forked could not use CUDA.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(len(os.sched_getaffinity(0)), context) as processes:
        futures = [processes.submit(_compile, *job) for job in jobs]
        for future in tqdm(as_completed(futures), "compiled", len(futures), mininterval=10):
            if error := future.result():
                tqdm.write(error)


def _compile(variant: Variant, choice: Choice) -> str:
    """Compiles a choice into Triton's cache; returns why it does not compile, or nothing."""
    function = getattr(kernels, variant.kernel)
    constants = {**dict(variant.constants), **dict(choice.blocks)}
    arguments = [name for name in function.arg_names if name not in constants]
    # Sizes are the last arguments, after the output.
    arrays = arguments.index("out") + 1
    values = [getattr(torch, variant.dtype)] * arrays + [16] * (len(arguments) - arrays)
    settings = {"num_warps": choice.warps, "num_stages": choice.stages}
    try:
        function.warmup(*values, grid=(1,), **constants, **settings)
    except (TritonError, RuntimeError, ValueError) as error:
        return f"{variant.name} {choice}: {str(error).splitlines()[0]}"
    return ""


def _collect(subject: Subject, kind: Family, collection: Collection) -> None:
    dtype = getattr(torch, subject.variant.dtype)
    generator = torch.Generator("cuda").manual_seed(0)
    inputs = [
        torch.randn(shape, generator=generator, device="cuda", dtype=torch.float32).to(dtype)
        for shape in subject.inputs
    ]
    out = torch.empty(subject.output, device="cuda", dtype=dtype)
    reference = expected(subject, inputs)
    works = []
    replays = []
    refused = []
    for choice in choices(subject, kind, collection.limits.tiles):
        run = partial(launch, subject, choice, inputs, out)
        try:
            replays.append(_replay(run, out, reference, TOLERANCE[subject.variant.dtype]))
            works.append(choice)
        except TileError as error:
            refused.append([asdict(choice), str(error)])
    if kind.default not in works or len(works) < _FEWEST:
        tqdm.write(f"{subject.name}: {len(works)} tiles work; {refused[0][1]}")
        return
    passes = [_pass(replays, collection.protocol, seed) for seed in (0, 1)]
    timing = Timing(*passes)
    label = timing.label()
    module = lowered(subject).compiler_ir("hlo").as_serialized_hlo_module_proto()
    graph = HloModuleProto.FromString(module)
    tiles = [subject.tile(choice) for choice in works]
    data = TuningData(modules=[tile_tuning_data(graph, tiles, label)])
    details = {
        "choices": [asdict(choice) for choice in works],
        "default_over_best": float(label[0] / label.min()),
        "refused": refused,
    }
    record(collection, subject.name, subject.variant.family, timing, details)
    write_atomically(collection.path(subject.name), data.SerializeToString())


def launch(
    subject: Subject, choice: Choice, inputs: Sequence[torch.Tensor], out: torch.Tensor
) -> None:
    """Runs a kernel once."""
    function = getattr(kernels, subject.variant.kernel)
    at = dict(choice.blocks)
    function[subject.grid(at)](
        *inputs,
        out,
        *subject.sizes,
        **dict(subject.variant.constants),
        **at,
        num_warps=choice.warps,
        num_stages=choice.stages,
    )


@dataclass(frozen=True)
class Replay:
    """Launches in a CUDA graph."""

    graph: torch.cuda.CUDAGraph
    launches: int

    def nanoseconds(self) -> float:
        """Runs the graph and returns the time of a launch."""
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        self.graph.replay()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e6 / self.launches


def _replay(
    run: Callable[[], None], out: torch.Tensor, reference: torch.Tensor, tolerance: float
) -> Replay:
    """Checks a tile, and captures its launches."""
    out.fill_(float("nan"))
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    try:
        run()
        begin.record()
        run()
        end.record()
        end.synchronize()
    except (TritonError, RuntimeError, ValueError) as error:
        raise TileError(str(error).splitlines()[0]) from error
    difference = float((out.float() - reference).norm() / reference.norm())
    if not difference <= tolerance:
        raise TileError(f"differs from PyTorch by {difference:.1e}")
    seconds = begin.elapsed_time(end) / 1e3
    if seconds > SLOWEST:
        raise TileError(f"takes {seconds:.3f} s")
    launches = int(np.clip(REPLAY_SECONDS / max(seconds, 1e-6), *LAUNCHES))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(launches):
            run()
    graph.replay()
    return Replay(graph, launches)


def _pass(replays: Sequence[Replay], protocol: Protocol, seed: int) -> np.ndarray:
    """Returns the run times of rounds in random order: [rounds, tiles]."""
    random = np.random.default_rng(seed)
    times = np.zeros((protocol.rounds, len(replays)))
    for number in range(protocol.rounds):
        for tile in random.permutation(len(replays)):
            times[number, tile] = replays[tile].nanoseconds()
    return times
