"""Fusion configurations of a program to measure."""

from dataclasses import dataclass
from functools import partial
from zlib import crc32

import numpy as np
from hlorank_tune.measure.fusion import draw
from hlorank_tune.measure.fusion.kernels import Configuration, Kernel
from hlorank_tune.measure.fusion.prepare import Prepared

_FLIPS = (1, 2, 4, 8, 16)
_TRIES = 4
"""Maximum draws per wanted configuration, since a small program may run out of new ones."""


@dataclass(frozen=True)
class FusionLimits:
    """Numbers of configurations, besides the compiler's, the greedy and the unfused."""

    random: int = 28
    near: int = 14
    """Configurations that differ from the compiler's in a few bits."""


@dataclass(frozen=True)
class Drawn:
    """A configuration, and how it was found."""

    kind: str
    """``compiler``, ``greedy``, ``unfused``, ``random`` or ``near``"""
    configuration: Configuration


def drawn_fusions(prepared: Prepared, name: str, limits: FusionLimits) -> list[Drawn]:
    """Returns the distinct configurations of a program, the compiler's own first."""
    random = np.random.default_rng(crc32(name.encode()))
    graph = prepared.graph
    own = prepared.compilers
    found: dict[tuple[Kernel, ...], Drawn] = {}

    def add(kind: str, configuration: Configuration) -> None:
        found.setdefault(configuration.kernels, Drawn(kind, configuration))

    def near() -> Configuration:
        return draw.neighbour(graph, own.fused, random, int(random.choice(_FLIPS)))

    add("compiler", own)
    add("greedy", draw.greedy(graph))
    add("unfused", draw.unfused(graph))
    for kind, count, make in (
        ("random", limits.random, partial(draw.drawn, graph, random)),
        ("near", limits.near, near),
    ):
        wanted = len(found) + count
        for _ in range(_TRIES * count):
            if len(found) < wanted:
                add(kind, make())
    return list(found.values())
