"""Configurations of graphs of named feature sets."""

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from hlorank.checks.arrays import array_of, floats
from hlorank.checks.errors import ConfigurationError
from hlorank.configurations.batch import Batch
from hlorank.wire.messages import ConfigBatch, NodeFeatureConfigs

_AXES = ("configuration", "node", "column")


class ConfigFeatures(Batch):
    """Configurations of one graph of a feature set, packed once.

    ``config_features`` is [configs, nodes, columns]: the configuration columns of the set for every
    node, in the units of the set. They are sent as f32.
    """

    def __init__(self, config_features: ArrayLike):
        array = floats(config_features, "config_features", _AXES, ConfigurationError)
        configs, nodes, columns = array.shape
        places = np.arange(configs * nodes).reshape(configs, nodes)
        self._pack(array.reshape(-1, columns), places)

    @classmethod
    def from_rows(cls, rows: ArrayLike, indices: ArrayLike) -> "ConfigFeatures":
        """Takes rows [rows, columns], and the number of every node's row: [configs, nodes]."""
        table = floats(rows, "rows", ("row", "column"), ConfigurationError)
        numbers = array_of(indices, "indices", ConfigurationError)
        if numbers.ndim != 2 or numbers.size == 0 or numbers.dtype.kind not in "iu":
            raise ConfigurationError(
                f"indices have shape {list(numbers.shape)} and type {numbers.dtype}, "
                "expected whole numbers [configs, nodes], at least one"
            )
        outside = (numbers < 0) | (numbers >= len(table))
        if outside.any():
            config, node = (int(place[0]) for place in outside.nonzero())
            raise ConfigurationError(
                f"configuration {config}, node {node} has row {numbers[config, node]}, "
                f"but there are {len(table)} rows"
            )
        configs = cls.__new__(cls)
        configs._pack(table, numbers)
        return configs

    def __len__(self) -> int:
        return len(self._indices)

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return int(self._indices.shape[1])

    @property
    def columns(self) -> int:
        """Number of columns of a node."""
        return int(self._rows.shape[1])

    def values(self) -> np.ndarray:
        """Returns the unpacked configurations: f32 [configs, nodes, columns]."""
        values: np.ndarray = self._rows[self._indices]
        return values

    @cached_property
    def wire(self) -> ConfigBatch:
        """The message: distinct rows if that is shorter, else all."""
        is_shorter = self._rows.size + self._indices.size < self._indices.size * self.columns
        message = NodeFeatureConfigs(config_count=len(self), column_count=self.columns)
        if is_shorter:
            message.rows, message.row_indices = self._rows.tobytes(), self._indices.tobytes()
        else:
            message.features = self.values().tobytes()
        return ConfigBatch(node_feature_configs=message)

    def _pack(self, rows: np.ndarray, indices: np.ndarray) -> None:
        """Keeps the distinct rows that are used, in order of first use."""
        used, first = np.unique(indices, return_index=True)
        used = used[first.argsort()]
        known: dict[bytes, int] = {}
        # Rows as bytes: a dict finds equal ones faster than NumPy sorts them.
        keys = rows[used].view(f"V{rows.shape[1] * rows.itemsize}").ravel().tolist()
        number_of_row = np.zeros(len(rows), "<u4")
        number_of_row[used] = [known.setdefault(key, len(known)) for key in keys]
        self._indices = number_of_row[indices]
        self._rows = np.frombuffer(b"".join(known), "<f4").reshape(len(known), -1)
