"""Builds TpuGraphs' messages of measured configurations."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hlorank_tune.measure.constrain import ConfigurableNode, Configuration
from hlorank_tune.measure.schema import ModuleTuningData


@dataclass(frozen=True)
class Tile:
    """One tile configuration of a kernel."""

    output: tuple[int, ...]
    reduction: tuple[int, ...] = ()
    input: tuple[int, ...] = ()


def layout_tuning_data(
    module,
    nodes: Sequence[ConfigurableNode],
    configurations: Iterable[Configuration],
    runtimes: Iterable[int],
):
    """Returns the ModuleTuningData of a layout graph; the first configuration is the default."""
    data = ModuleTuningData()
    data.module.CopyFrom(module)
    data.config_index_to_node.extend(node.number for node in nodes)
    for index, (configuration, runtime) in enumerate(zip(configurations, runtimes, strict=True)):
        run = data.runs.add(is_default=index == 0)
        run.profile.compute_time_ns = int(runtime)
        _write_layout(run.module_config.layout_config, configuration)
    return data


def _write_layout(message, configuration: Configuration) -> None:
    for entry in configuration:
        node = message.nodes.add()
        for order in entry:
            node.tensors.add(dims=order)


def tile_tuning_data(module, tiles: Iterable[Tile], runtimes: Iterable[int]):
    """Returns the ModuleTuningData of a kernel; the first tile is the default."""
    data = ModuleTuningData()
    data.module.CopyFrom(module)
    for index, (tile, runtime) in enumerate(zip(tiles, runtimes, strict=True)):
        run = data.runs.add(is_default=index == 0)
        run.profile.compute_time_ns = int(runtime)
        bounds = run.op_config.tile_size_config
        bounds.kernel_bounds.extend(tile.reduction)
        bounds.output_bounds.extend(tile.output)
        bounds.input_bounds.extend(tile.input)
    return data
