"""Random graphs with configurations, and measured graphs of a feature set."""

from dataclasses import dataclass

import numpy as np
from hlorank_tune.measure.atomic_files import write_json

from hlorank_training.data.dataset import Graph, Segment


@dataclass(frozen=True)
class Example:
    """A graph with configurations."""

    opcode: np.ndarray
    features: np.ndarray
    edges: np.ndarray
    """i64 [2,E]: consumers, then producers"""
    config: np.ndarray
    """f32 [C,24] for tiles, or [C,222] with columns of loops; i64 [C,K,18] for layouts"""
    configurable: np.ndarray | None = None
    """i64 [K], layouts only"""


def example(
    task: str = "tile", nodes: int = 9, configs: int = 6, seed: int = 0, columns: int = 24
) -> Example:
    """A random graph of which a node consumes some of the nodes before it."""
    random = np.random.default_rng(seed)
    consumers, producers = np.nonzero(np.tril(random.random((nodes, nodes)) < 0.3, -1))
    slots = np.sort(random.choice(nodes, max(nodes // 3, 1), replace=False))
    layouts = random.integers(-1, 6, (configs, len(slots), 18))
    tiles = random.integers(0, 512, (configs, columns)).astype(np.float32)
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


def write_feature_graph(folder, number, **changed):
    """A chain whose nodes take as long as they have steps, and twice as long if they are odd."""
    random = np.random.default_rng(number)
    nodes, configs = 3 + number % 4, 24
    odd = (np.arange(nodes) % 2).astype(np.float32)
    steps = random.integers(1, 1000, (configs, nodes, 1)).astype(np.float32)
    arrays = {
        "feature_set": np.frombuffer(b"loops-1", np.uint8),
        "node_features": np.stack([odd, 1 - odd], 1),
        "edge_index": np.array([[node + 1, node] for node in range(nodes - 1)], np.int64),
        "config_features": np.concatenate([steps, np.sqrt(steps)], -1),
        "config_runtime": (1000 * (steps[..., 0] * (1 + odd)).sum(1)).astype(np.int64),
    }
    np.savez(folder / f"g{number:02d}.npz", **{**arrays, **changed})
    passes = arrays["config_runtime"].tolist()
    write_json(folder / f"g{number:02d}.json", {"first_pass": passes, "second_pass": passes})
