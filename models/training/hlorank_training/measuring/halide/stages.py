"""The graph of stages, read from what the autoscheduler prints."""

import re

import numpy as np


def stage_graph(printed: str) -> tuple[tuple[str, ...], np.ndarray]:
    """Reads stages in the order of the features, and edges i64 [m, 2], from consumer to producer.

    A function with updates is a chain of stages, the last one first. What reads the function reads
    the last one.
    """
    counts = _stage_counts(printed)
    stages = [
        f"{name}.update({stage - 1})" if stage else name
        for name, count in counts.items()
        for stage in reversed(range(count))
    ]
    number = {name: place for place, name in enumerate(stages)}

    def stage(name: str, place: int) -> int:
        return number[f"{name}.update({place - 1})" if place else name]

    edges = {
        (number[consumer], stage(producer, counts[producer] - 1))
        for producer, consumer in re.findall(r"^Edge: (\S+) -> (\S+)$", printed, re.MULTILINE)
        if producer in counts
    }
    for name, count in counts.items():
        edges |= {(stage(name, place), stage(name, place - 1)) for place in range(1, count)}
    between = sorted(edge for edge in edges if edge[0] != edge[1])
    return tuple(stages), np.array(between, np.int64).reshape(-1, 2)


def _stage_counts(printed: str) -> dict[str, int]:
    """Returns the number of stages of every function that is not an input, in printed order."""
    counts: dict[str, int] = {}
    name = None
    for line in printed.splitlines():
        if line.startswith("Node: "):
            name = line.removeprefix("Node: ").strip()
            if name in counts:
                # Another pass of the search prints the same again.
                break
            counts[name] = 0
        elif name and re.fullmatch(r"  Stage \d+:", line):
            counts[name] += 1
        elif name and line.startswith("  pointwise: "):
            if " input: 1" in line:
                del counts[name]
            name = None
    return counts
