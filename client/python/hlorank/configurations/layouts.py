"""Layout configurations."""

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from hlorank.checks.arrays import whole_numbers
from hlorank.checks.errors import ConfigurationError
from hlorank.configurations.batch import Batch
from hlorank.wire.messages import (
    ConfigBatch,
    DeltaLayoutConfigs,
    LayoutTable,
    PackedLayoutConfigs,
)

_TENSORS = 3
_DIMENSIONS = 6
VALUES = _TENSORS * _DIMENSIONS
"""Values per node: six dimensions each for the output, the first and the second operand."""

# Encodes the values of a node as one number of 18 digits to base 7: below 2^53, so exact in f64.
_POWERS = 7.0 ** np.arange(VALUES)
_NUMBERS = 7**_DIMENSIONS
_MAX_TABLE = 1 << 16
_BYTE_TABLE = 1 << 8
_CHANGE_BYTES = 4
"""Maximum encoded bytes of one change, except in very large tables; a packed entry has 1 or 2."""


class Layouts(Batch):
    """Layout configurations of one graph, packed once.

    ``values`` is [configs, slots, 3, 6] or, like TpuGraphs' ``node_config_feat``,
    [configs, slots, 18]. For each configurable node in slot order, it has the minor-to-major
    dimensions of the output and the first two operands, from 0 to 5. -1 ends a list; a list of -1
    alone keeps the compiler's default.
    """

    def __init__(self, values: ArrayLike):
        self._tables, self._indices = _packed(_checked(values))

    def __len__(self) -> int:
        return len(self._indices)

    @property
    def slots(self) -> int:
        """Number of configurable nodes."""
        return len(self._tables)

    def values(self) -> np.ndarray:
        """Returns the unpacked configurations: i8 [configs, slots, 3, 6]."""
        values = np.empty((len(self), self.slots, VALUES), np.int8)
        for slot, table in enumerate(self._tables):
            digits = table[:, None] // (7 ** np.arange(VALUES)) % 7
            values[:, slot] = (digits - 1).astype(np.int8)[self._indices[:, slot]]
        return values.reshape(len(self), self.slots, _TENSORS, _DIMENSIONS)

    @cached_property
    def wire(self) -> ConfigBatch:
        """The message: a delta if that is shorter, else packed."""
        divisors = _NUMBERS ** np.arange(_TENSORS)
        entries = (table[:, None] // divisors % _NUMBERS for table in self._tables)
        tables = [LayoutTable(entries=each.ravel().tolist()) for each in entries]
        # Neighbours in a search differ in few slots.
        changed = self._indices != self._indices[0]
        if np.count_nonzero(changed) * _CHANGE_BYTES < changed.size:
            delta = DeltaLayoutConfigs(
                tables=tables,
                base=self._indices[0].tolist(),
                change_counts=np.count_nonzero(changed, axis=1).tolist(),
                change_slots=changed.nonzero()[1].tolist(),
                change_entries=self._indices[changed].tolist(),
            )
            return ConfigBatch(delta_layout_configs=delta)
        largest = max((len(table) for table in self._tables), default=0)
        width = "u1" if largest <= _BYTE_TABLE else "<u2"
        packed = PackedLayoutConfigs(
            config_count=len(self), tables=tables, indices=self._indices.astype(width).tobytes()
        )
        return ConfigBatch(packed_layout_configs=packed)


def _checked(values: ArrayLike) -> np.ndarray:
    """Checks values and returns them as [configs, slots, 18]."""
    array = whole_numbers(values, "layouts")
    if array.shape[2:] not in ((VALUES,), (_TENSORS, _DIMENSIONS)):
        raise ConfigurationError(
            f"layouts have shape {list(array.shape)}, "
            f"expected [configs, slots, {_TENSORS}, {_DIMENSIONS}] or [configs, slots, {VALUES}]"
        )
    if len(array) == 0:
        raise ConfigurationError("there are no configurations")
    array = array.reshape(*array.shape[:2], VALUES)
    if array.min(initial=0) < -1 or array.max(initial=0) > 5:
        config, slot, value = (int(at[0]) for at in ((array < -1) | (array > 5)).nonzero())
        raise ConfigurationError(
            f"configuration {config}, slot {slot} is {array[config, slot, value]}, outside -1..5"
        )
    return array


def _packed(values: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    """Returns the distinct entries of each slot, and the index of each configuration's entry.

    Entries are in order of first use.
    """
    numbers = ((values.astype(np.float64) + 1) @ _POWERS).astype(np.int64)
    indices = np.zeros(numbers.shape, np.uint16)
    # Skips the sort for slots that never change, which in a search are most of them.
    tables = list(numbers[0, :, None])
    for slot in (numbers != numbers[0]).any(axis=0).nonzero()[0]:
        tables[slot], indices[:, slot] = _in_order_of_first_use(numbers[:, slot], slot)
    return tables, indices


def _in_order_of_first_use(numbers: np.ndarray, slot: int) -> tuple[np.ndarray, np.ndarray]:
    distinct, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
    if len(distinct) > _MAX_TABLE:
        raise ConfigurationError(
            f"slot {slot} has {len(distinct)} distinct entries, the maximum is {_MAX_TABLE}; "
            "send several batches"
        )
    order = first.argsort()
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return distinct[order], place[inverse]
