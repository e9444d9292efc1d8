"""Configurations that a server sends, in any form of the wire."""

from collections.abc import Sequence

import numpy as np

from hlorank.checks.errors import AnswerError, ConfigurationError
from hlorank.configurations import Configurations
from hlorank.configurations.config_features import ConfigFeatures
from hlorank.configurations.fusions import Fusions
from hlorank.configurations.layouts import Layouts
from hlorank.configurations.tiles import Tiles
from hlorank.wire.messages import (
    ConfigBatch,
    DeltaLayoutConfigs,
    LayoutTable,
    NodeFeatureConfigs,
    PackedTileConfigs,
)


def configurations_of(batch: ConfigBatch) -> Configurations:
    """Reads a ``ConfigBatch``; every bit of fusions is a slot. Raises AnswerError if it is
    impossible."""
    form = batch.WhichOneof("configs")
    try:
        match form:
            case "packed_tile_configs":
                return _packed_tiles(batch.packed_tile_configs)
            case "tile_configs":
                tiles = batch.tile_configs.configs
                return Tiles(
                    kernel_bounds=[list(tile.kernel_bounds) for tile in tiles],
                    output_bounds=[list(tile.output_bounds) for tile in tiles],
                    input_bounds=[list(tile.input_bounds) for tile in tiles],
                )
            case "packed_layout_configs":
                packed = batch.packed_layout_configs
                largest = max((len(table.entries) // 3 for table in packed.tables), default=0)
                places = np.frombuffer(packed.indices, "u1" if largest <= 256 else "<u2")
                places = places.reshape(packed.config_count, len(packed.tables))
                return _layouts(packed.tables, places)
            case "delta_layout_configs":
                return _changed_layouts(batch.delta_layout_configs)
            case "packed_fusion_configs":
                fusions = batch.packed_fusion_configs
                bits = np.frombuffer(fusions.fused, np.uint8).reshape(fusions.config_count, -1)
                return Fusions(np.unpackbits(bits, axis=1, bitorder="little"))
            case "node_feature_configs":
                return _config_features(batch.node_feature_configs)
            case "parameter_configs":
                rows = [list(one.values) for one in batch.parameter_configs.configs]
                return ConfigFeatures(np.array(rows, "<f4")[:, None, :])
    except (ValueError, IndexError) as error:
        # NumPy's own errors are of bytes and indices that do not fit the counts.
        is_own = isinstance(error, ConfigurationError)
        reason = error if is_own else "their lengths do not fit the counts"
        raise AnswerError(f"the server's configurations are unreadable: {reason}") from error
    raise AnswerError(f"the server sent configurations in the form {form}")


def _packed_tiles(message: PackedTileConfigs) -> Tiles:
    counts = message.kernel_bound_count, message.output_bound_count, message.input_bound_count
    bounds = np.frombuffer(message.bounds, "<i4").reshape(message.config_count, sum(counts))
    kernel, output, input_ = np.split(bounds.astype(np.int64), np.cumsum(counts)[:2], axis=1)
    return Tiles(kernel_bounds=kernel, output_bounds=output, input_bounds=input_)


def _changed_layouts(message: DeltaLayoutConfigs) -> Layouts:
    counts, slots = (np.array(v, np.int64) for v in (message.change_counts, message.change_slots))
    if counts.sum() != len(slots):
        raise ConfigurationError(f"{len(slots)} changes do not fit the counts")
    indices = np.tile(np.array(message.base, np.int64), (len(counts), 1))
    indices[np.repeat(np.arange(len(counts)), counts), slots] = message.change_entries
    return _layouts(message.tables, indices)


def _layouts(tables: Sequence[LayoutTable], indices: np.ndarray) -> Layouts:
    """Takes the entries of each slot, and the number of the entry of each configuration."""
    values = np.empty((*indices.shape, 3, 6), np.int64)
    for slot, table in enumerate(tables):
        entries = np.array(table.entries, np.int64).reshape(-1, 3)[indices[:, slot]]
        # Digits to base 7; a larger number has a last digit that no dimension is.
        digits = entries[..., None] // 7 ** np.arange(6)
        digits[..., :-1] %= 7
        values[:, slot] = digits - 1
    return Layouts(values)


def _config_features(message: NodeFeatureConfigs) -> ConfigFeatures:
    configs, columns = message.config_count, message.column_count
    if not message.row_indices:
        return ConfigFeatures(np.frombuffer(message.features, "<f4").reshape(configs, -1, columns))
    rows = np.frombuffer(message.rows, "<f4").reshape(-1, columns)
    indices = np.frombuffer(message.row_indices, "<u4").reshape(configs, -1)
    return ConfigFeatures.from_rows(rows, indices)
