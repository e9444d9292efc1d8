"""What the server gives a whole-graph model: nodes, chunks and orders.

``models/artifacts.md`` specifies them.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hlorank_training.whole_graphs.graph import pruned


@dataclass(frozen=True)
class Permutations:
    """Orders of a batch, whose scores are averaged (TGraph's test-time augmentation)."""

    count: int
    """Number of orders, 1 to 64."""
    seed: int
    """Seed of the orders, 0 to 2^64 - 1."""

    def order(self, number: int, configs: int) -> np.ndarray:
        """Returns the configurations i64 [configs] in the order with this number."""
        of_order = _mix(_mix(np.array([self.seed], np.uint64)) ^ np.uint64(number))
        hashes = _mix(of_order ^ np.arange(configs, dtype=np.uint64))
        return np.argsort(hashes, kind="stable")


@dataclass(frozen=True)
class ServingRule:
    """The fields of the manifest that say what the server gives a whole-graph model."""

    chunk_configs: int
    """Maximum number of configurations of a chunk."""
    nodes: str = "all"
    """``all``, or ``pruned`` for the nodes that pruning keeps."""
    chunking: str = "full"
    """``full``, or ``even`` for chunks whose sizes differ by at most one."""
    permutations: Permutations | None = None

    def manifest_fields(self) -> dict[str, Any]:
        """Returns the fields that differ from the manifest's defaults, and ``chunk_configs``."""
        default = ServingRule(self.chunk_configs)
        changed = {
            key: value for key, value in asdict(self).items() if value != getattr(default, key)
        }
        return {"chunk_configs": self.chunk_configs} | changed

    def whole_batch(self) -> int:
        """Returns how many configurations show how a batch is cut and ordered; 0 if any do."""
        whole = self.chunking == "even" or self.permutations is not None
        return self.chunk_configs + 2 if whole else 0

    def graph(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Returns the inputs of the graph for the nodes that the model takes."""
        return pruned(inputs) if self.nodes == "pruned" else inputs

    def chunks(self, configs: int) -> list[np.ndarray]:
        """Returns the configurations i64 [c] of each chunk, of all orders."""
        orders: Iterator[np.ndarray] = iter([np.arange(configs)])
        if self.permutations and configs > self.chunk_configs:
            numbers = range(self.permutations.count)
            orders = (self.permutations.order(number, configs) for number in numbers)
        return [chunk for order in orders for chunk in self._cut(order)]

    def _cut(self, order: np.ndarray) -> list[np.ndarray]:
        if self.chunking == "even":
            # The first parts get what cannot be divided.
            return np.array_split(order, -(-len(order) // self.chunk_configs))
        starts = range(0, len(order), self.chunk_configs)
        return [order[start : start + self.chunk_configs] for start in starts]


def _mix(state: np.ndarray) -> np.ndarray:
    """Returns one step of SplitMix64 on u64, which wraps around."""
    z = state + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
