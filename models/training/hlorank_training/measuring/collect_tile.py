"""Measures the run times of tiles: one TuningData file per kernel, resumable."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from hlorank_tune.measure.atomic_files import write_atomically
from hlorank_tune.measure.execute import backend
from hlorank_tune.measure.lower import lower
from hlorank_tune.measure.results import largest_difference
from hlorank_tune.measure.rounds import Protocol, measure
from hlorank_tune.measure.schema import TuningData
from hlorank_tune.measure.tuning_data import Tile, tile_tuning_data
from tqdm import tqdm

from hlorank_training.measuring.choose_tiles import TileLimits, measured_tiles
from hlorank_training.measuring.kernel import Kernel
from hlorank_training.measuring.kernel_shapes import measured_kernels
from hlorank_training.measuring.provenance import Collection, load_average, record

TOLERANCE = 1e-4


HALIDE_SHAPES = 8
"""Kernels of each family that are also measured as Halide loop nests."""

Run = Callable[[], Any]
"""Runs one tile to its end and returns the output."""


@dataclass(frozen=True)
class TileSource:
    """A compiler of tiles, and the kernels that it supports."""

    name: str
    kernels: Sequence[Kernel]
    compile: Callable[[Kernel, Sequence[Tile], Sequence[Any]], list[Run]]
    """Maps (kernel, tiles, arguments) to one run per tile, in the order of the tiles."""
    packages: tuple[str, ...]
    """The Python packages whose versions matter."""


def collect_tile(
    folder: Path, minutes: float, protocol: Protocol, limits: TileLimits, source: str = "xla"
) -> None:
    """Measures kernels until the time limit; skips kernels whose files exist.

    ``source`` is one of ``SOURCES``; each needs a folder of its own.
    """
    tiles_from = SOURCES[source]()
    collection = Collection(folder, "tile", protocol, limits, tiles_from.name, tiles_from.packages)
    deadline = time.monotonic() + 60 * minutes
    for kernel in tqdm(tiles_from.kernels, desc="kernels"):
        if time.monotonic() > deadline:
            break
        if not collection.has(kernel.name):
            _collect(kernel, tiles_from, collection)


def _xla() -> TileSource:
    return TileSource(backend(), measured_kernels(), _compile_xla, ("jax", "jaxlib"))


def _halide() -> TileSource:
    # Imported only here because the package is optional.
    from hlorank_training.measuring.halide_kernels import compile_halide, runs_on_halide

    supported = [kernel for kernel in measured_kernels() if runs_on_halide(kernel)]
    # Families alternate, so the first kernels have the first shapes of each family.
    count = HALIDE_SHAPES * len({kernel.family for kernel in supported})
    return TileSource("halide", supported[:count], compile_halide, ("jax", "jaxlib", "halide"))


SOURCES: dict[str, Callable[[], TileSource]] = {"xla": _xla, "halide": _halide}


def _compile_xla(kernel: Kernel, tiles: Sequence[Tile], arguments: Sequence[Any]) -> list[Run]:
    compiled = [jax.jit(kernel.tiled(tile)).lower(*arguments).compile() for tile in tiles]
    return [lambda run=run: jax.block_until_ready(run(*arguments)) for run in compiled]


def _collect(kernel: Kernel, source: TileSource, collection: Collection) -> None:
    begin = time.monotonic()
    load = load_average()
    arguments = kernel.arguments()
    tiles = measured_tiles(kernel, collection.limits)
    runs = source.compile(kernel, tiles, arguments)
    error = _error(kernel, arguments, runs)
    # Not "greater than", since NaN must stop the collection too.
    if not error <= TOLERANCE:
        raise RuntimeError(
            f"a tiled '{kernel.name}' differs from the untiled kernel by {error:.1e}"
        )
    timing = measure(runs, collection.protocol)
    module = lower(kernel.name, kernel.whole, arguments)
    data = TuningData(modules=[tile_tuning_data(module, tiles, timing.label())])
    details = {
        "largest_difference": error,
        "load_average_before": load,
        "seconds": time.monotonic() - begin,
    }
    record(collection, kernel.name, kernel.family, timing, details)
    write_atomically(collection.path(kernel.name), data.SerializeToString())


def _error(kernel: Kernel, arguments, runs) -> float:
    expected = [jax.jit(kernel.whole)(*arguments)]
    return float(np.max([largest_difference(expected, [run()]) for run in runs]))
