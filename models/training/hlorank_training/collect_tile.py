"""Measure the run times of tiles: one TuningData file per kernel, resumable."""

import time
from pathlib import Path
from zlib import crc32

import jax
import numpy as np
from tqdm import tqdm

from .choose_tiles import TileLimits, choose_tiles
from .execute import largest_difference
from .files import write_atomically
from .kernel import Kernel
from .kernels import kernels
from .lower import lower
from .measure import Protocol, measure
from .provenance import Collection, load_average, record
from .schema import TuningData
from .tuning_data import tile_tuning_data

TOLERANCE = 1e-4


def collect_tile(folder: Path, minutes: float, protocol: Protocol, limits: TileLimits) -> None:
    """Measure kernel after kernel until the time is over; files that exist are kept."""
    collection = Collection(folder, "tile", protocol, limits)
    deadline = time.monotonic() + 60 * minutes
    for kernel in tqdm(kernels(), desc="kernels"):
        if time.monotonic() > deadline:
            break
        if not collection.has(kernel.name):
            _collect(kernel, collection)


def _collect(kernel: Kernel, collection: Collection) -> None:
    begin, load = time.monotonic(), load_average()
    arguments = kernel.arguments()
    random = np.random.default_rng(crc32(kernel.name.encode()))
    tiles = choose_tiles(kernel, collection.limits, random)
    compiled = [jax.jit(kernel.tiled(tile)).lower(*arguments).compile() for tile in tiles]
    runs = [lambda run=run: jax.block_until_ready(run(*arguments)) for run in compiled]
    error = _error(kernel, arguments, runs)
    if error > TOLERANCE:
        raise RuntimeError(f"a tiled '{kernel.name}' differs from the untiled one by {error:.1e}")
    timing = measure(runs, collection.protocol)
    module = lower(kernel.name, kernel.whole, arguments)
    data = TuningData(modules=[tile_tuning_data(module, tiles, timing.label())])
    details = {"largest_difference": error, "seconds": time.monotonic() - begin}
    record(collection, kernel.name, kernel.family, timing, load, details)
    write_atomically(collection.path(kernel.name), data.SerializeToString())


def _error(kernel: Kernel, arguments, runs) -> float:
    expected = [jax.jit(kernel.whole)(*arguments)]
    return max(largest_difference(expected, [run()]) for run in runs)
