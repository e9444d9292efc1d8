"""Random graphs with configurations, and measured graphs of a feature set."""

from collections.abc import Sequence
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


def node_features(
    shapes: Sequence[Sequence[int]], dimensions: Sequence[Sequence[int]] = ()
) -> np.ndarray:
    """Raw features [n,140] of f32 nodes, of which the last one is the root: their shapes, and
    lists of dimensions."""
    features = np.zeros((len(shapes), 140), np.float32)
    features[-1, 0] = 1
    features[:, [13, 44]] = 1
    features[:, 28] = [np.prod(shape) for shape in shapes]
    for first, lists in ((21, shapes), (31, dimensions)):
        for row, values in zip(features, lists, strict=False):
            row[first : first + len(values)] = values
    return features


def encoder_inputs(
    width: int, nodes: int, count: int = 6, seed: int = 0, largest: float = 500
) -> list[np.ndarray]:
    """The six inputs of an encoder: rows of three segments, the first with half its nodes.

    ``width`` is that of a tile, or 18 of an entry of a layout; features are up to ``largest``.
    """
    random = np.random.default_rng(seed)
    features = largest ** random.random((3, nodes, 140)) * random.choice([-1, 0, 1], 140)
    features[..., 21:27] = random.integers(1, 500, (3, nodes, 6))
    mask = np.ones((3, nodes), np.float32)
    mask[0, nodes // 2 :] = 0
    layout = random.integers(-2, 6, (count, nodes, 18))
    tile = random.integers(0, 512, (count, width)).astype(np.float32)
    return [
        random.integers(0, 120, (3, nodes)),
        features.astype(np.float32),
        np.tril(random.random((3, nodes, nodes)) < 0.4, -1).astype(np.float32),
        mask,
        np.arange(count) % 3,
        layout if width == 18 else tile,
    ]


def padded(inputs: list[np.ndarray], more: int) -> list[np.ndarray]:
    """The same rows with ``more`` padded nodes that hold garbage."""
    opcode, features, operands, mask, segment, config = inputs
    node = (0, more)
    wide = np.pad(config, [(0, 0), node, (0, 0)], constant_values=3) if config.ndim == 3 else config
    return [
        np.pad(opcode, [(0, 0), node], constant_values=7),
        np.pad(features, [(0, 0), node, (0, 0)], constant_values=99),
        np.pad(operands, [(0, 0), node, node], constant_values=1),
        np.pad(mask, [(0, 0), node]),
        segment,
        wide,
    ]


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
