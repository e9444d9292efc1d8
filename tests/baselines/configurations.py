"""Configurations of one request, decoded from their packed form."""

from dataclasses import dataclass

import numpy as np

from segments import Bucket

NOT_CONFIGURABLE = -2
"""Layout value of a node that has no layout to choose."""
VALUES = 18
"""Layout values of a node: three tensors of six dimensions."""
_POWERS = 7 ** np.arange(6)


@dataclass(frozen=True)
class Layouts:
    """Layout configurations."""

    values: np.ndarray
    """i64 [t, 18]: the entries of all tables in a row, then one that is not configurable"""
    entries: np.ndarray
    """i64 [c, slots + 1]: positions in ``values``"""
    table_sizes: np.ndarray
    """i64 [slots + 1]"""

    @property
    def count(self) -> int:
        """How many configurations there are."""
        return len(self.entries)

    def distinct(self, bucket: Bucket, segment: int) -> tuple[np.ndarray, np.ndarray]:
        """Configurations that differ on a segment, and which of them each one is."""
        slots = bucket.slot[segment]
        slots = slots[slots < len(self.table_sizes) - 1]
        entries, sizes = self.entries[:, slots], self.table_sizes[slots]
        # Sorting numbers is several times faster than sorting rows.
        if np.log2(sizes).sum() < 62:
            offsets = entries - entries.min(0, initial=1 << 62)
            number = offsets @ np.concatenate(([1], np.cumprod(sizes)))[:-1]
            _, first, which = np.unique(number, return_index=True, return_inverse=True)
        else:
            _, first, which = np.unique(entries, axis=0, return_index=True, return_inverse=True)
        return first, which.reshape(-1)

    def encoder_input(self, bucket: Bucket, segment: np.ndarray, config: np.ndarray) -> np.ndarray:
        """The encoder's ``config`` of rows of (segment, configuration): i64 [b, n, 18]."""
        return self.values[self.entries[config[:, None], bucket.slot[segment]]]


@dataclass(frozen=True)
class Tiles:
    """Tile configurations."""

    features: np.ndarray
    """f32 [c, 24]"""

    @property
    def count(self) -> int:
        """How many configurations there are."""
        return len(self.features)

    def distinct(self, _bucket: Bucket, _segment: int) -> tuple[np.ndarray, np.ndarray]:
        """Tiles that differ, and which of them each one is."""
        _, first, which = np.unique(self.features, axis=0, return_index=True, return_inverse=True)
        return first, which.reshape(-1)

    def encoder_input(self, _: Bucket, _segment: np.ndarray, config: np.ndarray) -> np.ndarray:
        """The encoder's ``config`` of rows of (segment, configuration): f32 [b, 24]."""
        return self.features[config]


Configurations = Layouts | Tiles


def layouts(table_sizes: np.ndarray, numbers: np.ndarray, indices: bytes) -> Layouts:
    """Packed layouts: entries of each table, three base-7 numbers an entry, the index matrix."""
    slots, largest = len(table_sizes), table_sizes.max()
    index = np.frombuffer(indices, np.uint8 if largest <= 256 else "<u2").reshape(-1, slots)
    digits = numbers.reshape(-1, 3, 1) // _POWERS % 7
    values = np.full((len(digits) + 1, VALUES), NOT_CONFIGURABLE, np.int64)
    values[:-1] = digits.reshape(-1, VALUES) - 1
    starts = np.concatenate(([0], np.cumsum(table_sizes)))
    entries = np.empty((len(index), slots + 1), np.int64)
    np.add(index, starts[:-1], out=entries[:, :-1])
    entries[:, -1] = starts[-1]
    return Layouts(values, entries, np.append(table_sizes, 1))


def tiles(bound_counts: tuple[int, int, int], bounds: bytes) -> Tiles:
    """Packed tiles: per list of bounds six values, sum and product (0 of an empty list)."""
    matrix = np.frombuffer(bounds, "<i4").reshape(-1, sum(bound_counts)).astype(np.int64)
    features = np.zeros((len(matrix), 24), np.float32)
    lists = np.split(matrix, np.cumsum(bound_counts)[:-1], axis=1)
    for number, values in enumerate(lists):
        if values.shape[1]:
            first = 8 * number
            features[:, first : first + min(6, values.shape[1])] = values[:, :6]
            features[:, first + 6] = values.sum(1)
            features[:, first + 7] = values.prod(1)
    return Tiles(features)
