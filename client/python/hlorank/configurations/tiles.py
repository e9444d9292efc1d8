"""Tile configurations."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from hlorank.checks.arrays import whole_numbers
from hlorank.checks.errors import ConfigurationError
from hlorank.configurations.batch import Batch
from hlorank.wire.messages import ConfigBatch, PackedTileConfigs, TileConfig, TileConfigs

FEATURES = 24
"""Six values, their sum and their product, for each of three lists of bounds."""
_LISTS = ("kernel_bounds", "output_bounds", "input_bounds")
_VALUES = 6
_SMALLEST = -(1 << 31)
_LARGEST = (1 << 31) - 1

Bounds = np.ndarray | Sequence[Sequence[int]]
"""[configs, bounds], or one list of any length per configuration."""


@dataclass(frozen=True)
class _BoundLists:
    """One list of bounds per configuration."""

    values: np.ndarray
    """i64 [configs, longest], filled up with 0"""
    counts: np.ndarray
    """i64 [configs]: lengths of the lists"""

    def of(self, config: int) -> list[int]:
        bounds: list[int] = self.values[config, : self.counts[config]].tolist()
        return bounds


class Tiles(Batch):
    """Tile configurations of one kernel.

    Bounds are sizes per dimension, the most minor first as in XLA. Each argument is
    [configs, bounds], or one list of any length per configuration. Omitted arguments are empty.
    """

    def __init__(
        self,
        *,
        kernel_bounds: Bounds | None = None,
        output_bounds: Bounds | None = None,
        input_bounds: Bounds | None = None,
    ):
        given = zip(_LISTS, (kernel_bounds, output_bounds, input_bounds), strict=True)
        lists = {name: _bound_lists(name, bounds) for name, bounds in given if bounds is not None}
        counts = {len(bounds.counts) for bounds in lists.values()}
        if not counts:
            raise ConfigurationError("there are no configurations")
        if len(counts) > 1:
            raise ConfigurationError(
                f"the lists of bounds have different numbers of configurations: {sorted(counts)}"
            )
        configs = counts.pop()
        empty = _BoundLists(np.zeros((configs, 0), np.int64), np.zeros(configs, np.int64))
        self._lists = [lists.get(name, empty) for name in _LISTS]

    @classmethod
    def from_features(cls, config_feat: ArrayLike) -> "Tiles":
        """Takes TpuGraphs' ``config_feat`` [configs, 24]."""
        features = whole_numbers(config_feat, "config_feat")
        if features.ndim != 2 or features.shape[1] != FEATURES:
            raise ConfigurationError(
                f"config_feat has shape {list(features.shape)}, expected [configs, {FEATURES}]"
            )
        if len(features) == 0:
            raise ConfigurationError("there are no configurations")
        tiles = cls.__new__(cls)
        tiles._lists = [_lists_of_features(part) for part in np.split(features, len(_LISTS), 1)]
        wrong = (tiles.features() != features.astype(np.float32)).any(axis=1)
        if wrong.any():
            raise ConfigurationError(
                f"configuration {int(wrong.argmax())} of config_feat: no tile with at most "
                f"{_VALUES} bounds per list has these features; pass the bounds themselves"
            )
        return tiles

    def __len__(self) -> int:
        return len(self._lists[0].counts)

    def features(self) -> np.ndarray:
        """Returns TpuGraphs' ``config_feat``: f32 [configs, 24]."""
        features = np.zeros((len(self), len(_LISTS), FEATURES // len(_LISTS)), np.float32)
        for number, bounds in enumerate(self._lists):
            used = np.arange(bounds.values.shape[1]) < bounds.counts[:, None]
            values = bounds.values[:, :_VALUES]
            features[:, number, : values.shape[1]] = values
            features[:, number, _VALUES] = bounds.values.sum(axis=1)
            product = np.where(used, bounds.values, 1).prod(axis=1)
            features[:, number, _VALUES + 1] = np.where(bounds.counts > 0, product, 0)
        return features.reshape(len(self), FEATURES)

    @cached_property
    def wire(self) -> ConfigBatch:
        """The message: packed, unless tiles differ in their numbers of bounds or a bound exceeds
        32 bits."""
        matrix = np.concatenate([bounds.values for bounds in self._lists], axis=1)
        is_even = all((bounds.counts == bounds.counts[0]).all() for bounds in self._lists)
        if is_even and matrix.min(initial=0) >= _SMALLEST and matrix.max(initial=0) <= _LARGEST:
            kernel, output, input_ = (int(bounds.counts[0]) for bounds in self._lists)
            packed = PackedTileConfigs(
                config_count=len(self),
                kernel_bound_count=kernel,
                output_bound_count=output,
                input_bound_count=input_,
                bounds=matrix.astype("<i4").tobytes(),
            )
            return ConfigBatch(packed_tile_configs=packed)
        named = list(zip(_LISTS, self._lists, strict=True))
        configs = (
            TileConfig(**{name: bounds.of(config) for name, bounds in named})
            for config in range(len(self))
        )
        return ConfigBatch(tile_configs=TileConfigs(configs=configs))


def _bound_lists(name: str, bounds: Bounds) -> _BoundLists:
    counts = None if isinstance(bounds, np.ndarray) else _counts(name, bounds)
    if counts is None or (counts == counts[:1]).all():
        matrix = whole_numbers(bounds, name)
        if matrix.shape[:1] == (0,):
            raise ConfigurationError("there are no configurations")
        if matrix.ndim != 2:
            raise ConfigurationError(
                f"{name} has shape {list(matrix.shape)}, expected [configs, bounds]"
            )
        return _BoundLists(matrix.astype(np.int64), np.full(len(matrix), matrix.shape[1]))
    flat = whole_numbers([bound for tile in bounds for bound in tile], name)
    if flat.ndim != 1:
        raise ConfigurationError(f"{name} contains lists, expected bounds")
    values = np.zeros((len(counts), counts.max()), np.int64)
    values[np.arange(values.shape[1]) < counts[:, None]] = flat
    return _BoundLists(values, counts)


def _counts(name: str, bounds: Sequence[Sequence[int]]) -> np.ndarray:
    """Returns the length of each list: i64 [configs]."""
    try:
        return np.array([len(tile) for tile in bounds], np.int64)
    except TypeError as error:
        raise ConfigurationError(f"{name} needs one list per configuration") from error


def _lists_of_features(features: np.ndarray) -> _BoundLists:
    """Recovers the shortest lists from features [configs, 8].

    A zero at the end of a list is visible only in the product.
    """
    values = features[:, :_VALUES].astype(np.int64)
    places = np.arange(1, _VALUES + 1)
    counts = np.where(values != 0, places, 0).max(axis=1)
    has_zero = ((values == 0) & (places <= counts[:, None])).any(axis=1)
    ends_in_zero = (counts > 0) & (features[:, _VALUES + 1] == 0) & ~has_zero
    counts = np.minimum(counts + ends_in_zero, _VALUES)
    return _BoundLists(values[:, : counts.max(initial=0)], counts)
