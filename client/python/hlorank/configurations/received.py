"""Configurations that a server sends, in any form of the wire."""

import numpy as np

from hlorank.checks.errors import AnswerError
from hlorank.configurations import Configurations
from hlorank.configurations.config_features import ConfigFeatures
from hlorank.configurations.fusions import Fusions, from_delta
from hlorank.configurations.layouts import Layouts
from hlorank.configurations.tiles import Tiles
from hlorank.wire.messages import (
    ConfigBatch,
    DeltaLayoutConfigs,
    PackedLayoutConfigs,
    PackedTileConfigs,
    TileConfigs,
)


def configurations_of(batch: ConfigBatch) -> Configurations:
    """Reads a ``ConfigBatch``. Raises AnswerError if it is impossible."""
    form = batch.WhichOneof("configs")
    try:
        match form:
            case "packed_tile_configs":
                return _packed_tiles(batch.packed_tile_configs)
            case "tile_configs":
                return _readable_tiles(batch.tile_configs)
            case "packed_layout_configs":
                return Layouts.from_packed(batch.packed_layout_configs)
            case "delta_layout_configs":
                return Layouts.from_packed(_packed_layouts(batch.delta_layout_configs))
            case "packed_fusion_configs":
                return Fusions.from_packed(batch.packed_fusion_configs)
            case "delta_fusion_configs":
                return from_delta(batch.delta_fusion_configs)
            case "node_feature_configs":
                return ConfigFeatures.from_message(batch.node_feature_configs)
    except (ValueError, IndexError) as error:
        raise AnswerError(f"the server's configurations are unreadable: {error}") from error
    raise AnswerError(f"the server sent configurations in the form {form}")


def _packed_tiles(message: PackedTileConfigs) -> Tiles:
    counts = message.kernel_bound_count, message.output_bound_count, message.input_bound_count
    bounds = np.frombuffer(message.bounds, "<i4").reshape(message.config_count, sum(counts))
    kernel, output, input_ = np.split(bounds.astype(np.int64), np.cumsum(counts)[:2], axis=1)
    return Tiles(kernel_bounds=kernel, output_bounds=output, input_bounds=input_)


def _readable_tiles(message: TileConfigs) -> Tiles:
    return Tiles(
        kernel_bounds=[list(tile.kernel_bounds) for tile in message.configs],
        output_bounds=[list(tile.output_bounds) for tile in message.configs],
        input_bounds=[list(tile.input_bounds) for tile in message.configs],
    )


def _packed_layouts(message: DeltaLayoutConfigs) -> PackedLayoutConfigs:
    counts = np.array(message.change_counts, np.int64)
    indices = np.tile(np.array(message.base, np.int64), (len(counts), 1))
    configs = np.repeat(np.arange(len(counts)), counts)
    indices[configs, np.array(message.change_slots, np.int64)] = message.change_entries
    largest = max((len(table.entries) // 3 for table in message.tables), default=0)
    return PackedLayoutConfigs(
        config_count=len(counts),
        tables=message.tables,
        indices=indices.astype("u1" if largest <= 256 else "<u2").tobytes(),
    )
