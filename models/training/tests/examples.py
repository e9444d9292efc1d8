"""Random graphs with configurations."""

from dataclasses import dataclass

import numpy as np

from hlorank_training.data.dataset import Graph, Segment


@dataclass(frozen=True)
class Example:
    """A graph with configurations."""

    opcode: np.ndarray
    features: np.ndarray
    edges: np.ndarray
    """i64 [2,E]: consumers, then producers"""
    config: np.ndarray
    """f32 [C,24] for tiles, i64 [C,K,18] for layouts"""
    configurable: np.ndarray | None = None
    """i64 [K], layouts only"""


def example(task: str = "tile", nodes: int = 9, configs: int = 6, seed: int = 0) -> Example:
    """A random graph of which a node consumes some of the nodes before it."""
    random = np.random.default_rng(seed)
    consumers, producers = np.nonzero(np.tril(random.random((nodes, nodes)) < 0.3, -1))
    slots = np.sort(random.choice(nodes, max(nodes // 3, 1), replace=False))
    layouts = random.integers(-1, 6, (configs, len(slots), 18))
    tiles = random.integers(0, 512, (configs, 24)).astype(np.float32)
    return Example(
        random.integers(1, 120, nodes),
        _features(random, nodes),
        np.stack([consumers, producers]),
        layouts if task == "layout" else tiles,
        slots if task == "layout" else None,
    )


def _features(random: np.random.Generator, nodes: int) -> np.ndarray:
    features = random.integers(0, 50, (nodes, 140)).astype(np.float32)
    features[:, 134:] = random.integers(0, 6, (nodes, 6))
    return features


def as_graph(given: Example) -> Graph:
    """The kernel as the training of segment models reads it."""
    operands = np.zeros((len(given.opcode),) * 2, np.float32)
    operands[tuple(given.edges)] = 1
    choice = np.arange(len(given.config))
    segment = Segment(given.opcode, given.features, operands, given.config, choice)
    return Graph("example", (segment,), 1000 + choice, None)
