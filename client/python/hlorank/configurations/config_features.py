"""Configurations of graphs of named feature sets."""

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from hlorank.checks.arguments import instance
from hlorank.checks.arrays import array_of, finite_floats
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
        array = finite_floats(config_features, "config_features", _AXES, ConfigurationError)
        configs, nodes, columns = array.shape
        places = np.arange(configs * nodes).reshape(configs, nodes)
        self._pack(array.reshape(-1, columns), places)

    @classmethod
    def from_rows(cls, rows: ArrayLike, indices: ArrayLike) -> "ConfigFeatures":
        """Takes rows [rows, columns], and the number of every node's row: [configs, nodes]."""
        table = finite_floats(rows, "rows", ("row", "column"), ConfigurationError)
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

    @classmethod
    def from_message(cls, message: NodeFeatureConfigs) -> "ConfigFeatures":
        """Reads a ``NodeFeatureConfigs`` message of either form.

        Raises:
            ConfigurationError: if its arrays do not have the lengths that it says.
        """
        instance(message, NodeFeatureConfigs, "message", "a NodeFeatureConfigs")
        configs = message.config_count
        columns = message.column_count
        try:
            if not message.row_indices:
                return cls(np.frombuffer(message.features, "<f4").reshape(configs, -1, columns))
            rows = np.frombuffer(message.rows, "<f4").reshape(-1, columns)
            indices = np.frombuffer(message.row_indices, "<u4").reshape(configs, -1)
        except ConfigurationError:
            raise
        except ValueError as error:
            raise ConfigurationError(
                f"the arrays are not {configs} configurations of {columns} columns: {error}"
            ) from error
        return cls.from_rows(rows, indices)

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
        return ConfigBatch(node_feature_configs=self.table() if is_shorter else self.dense())

    def dense(self) -> NodeFeatureConfigs:
        """Returns the ``NodeFeatureConfigs`` message with all values."""
        return self._message(features=self.values().tobytes())

    def table(self) -> NodeFeatureConfigs:
        """Returns the ``NodeFeatureConfigs`` message with distinct rows."""
        return self._message(rows=self._rows.tobytes(), row_indices=self._indices.tobytes())

    def _message(self, **arrays: bytes) -> NodeFeatureConfigs:
        return NodeFeatureConfigs(config_count=len(self), column_count=self.columns, **arrays)

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
