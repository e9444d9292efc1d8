"""Measured graphs of a feature set whose run times follow a rule."""

import numpy as np
from hlorank_tune.measure.atomic_files import write_json


def write_graph(folder, number, **changed):
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
