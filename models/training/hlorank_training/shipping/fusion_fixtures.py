"""Writes programs before fusion, and kernels of them, for the tests of the server's kernels."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from hlorank.measure.atomic_files import write_atomically
from hlorank.measure.fusion.draw import drawn
from hlorank.measure.fusion.graph import FusionGraph, packed
from hlorank.measure.fusion.kernels import Kernel
from hlorank.measure.fusion.prepare import Prepared, prepare
from hlorank.measure.lower import lower

from hlorank_training.measuring.fusion_zoo import fusion_programs

PROGRAMS = (
    "adam_small",
    "experts_train",
    "mixer_small",
    "recommender",
    "sharpen_train",
    "transformer_encoder",
    "unet_nhwc",
)
_DRAWN = 3


def write_fusion_fixtures(folder: Path) -> list[Path]:
    """Prepares some programs of the zoo; returns the files."""
    written = []
    for network in fusion_programs():
        if network.name in PROGRAMS:
            prepared = prepare(lower(network.name, network.function(), network.arguments()))
            module = prepared.graph.module.SerializeToString(deterministic=True)
            lines = "\n".join([*_kernels(prepared), ""]).encode()
            for ending, content in ((".hlo_module.pb", module), (".kernels.txt", lines)):
                written.append(folder / (network.name + ending))
                write_atomically(written[-1], content)
    return written


def _kernels(prepared: Prepared) -> Iterator[str]:
    """Yields the bits of some configurations, and a line per kernel after each of them."""
    graph, random = prepared.graph, np.random.default_rng(0)
    for configuration in [drawn(graph, random) for _ in range(_DRAWN)]:
        yield f"fused {packed(graph, configuration.fused).hex()}"
        yield from (_line(graph, kernel) for kernel in configuration.kernels)


def _line(graph: FusionGraph, kernel: Kernel) -> str:
    """Returns the nodes of the module that a kernel computes, and after a ``<`` those it reads."""
    first = graph.slot_numbers[0] - graph.slots[0]
    inputs = [node for node in kernel.inputs if not graph.is_scalar_constant(node)]
    computed, read = ((str(first + node) for node in nodes) for nodes in (kernel.members, inputs))
    return " ".join([*computed, "<", *read])
