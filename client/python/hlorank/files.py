"""Files of graphs and their measured run times, told apart by content as the Rust side does."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from hlorank.errors import ConfigurationError, GraphFileError, HlorankError
from hlorank.graph import Graph
from hlorank.layouts import VALUES, Layouts
from hlorank.messages import HloModuleProto, HloProto, ModuleTuningData, TuningData
from hlorank.task import Task
from hlorank.tiles import Tiles
from hlorank.whole_numbers import whole_numbers

# Groups that never give back what they took: else many comments take exponential time.
_TEXT = re.compile(rb"(?>\s+|//[^\n]*\n|/\*(?>.*?\*/))*+HloModule\b", re.DOTALL)
_LEAST_TIME: dict[Task, int] = {"layout": 1, "tile": 2}
"""Nanoseconds from which a run counts as measured, as in TpuGraphs."""


@dataclass(frozen=True, eq=False)
class MeasuredGraph:
    """A graph of a file, and what was measured of it."""

    name: str
    """Of the module, or of the file."""
    graph: Graph
    configurations: Layouts | Tiles | None
    """None where the file has no measured ones."""
    run_times: np.ndarray
    """i64 [configs] nanoseconds; all 0 in TpuGraphs' test files"""


def read_graphs(path: str | PathLike[str], *, task: Task = "layout") -> list[MeasuredGraph]:
    """The graphs of a file.

    It is a TpuGraphs npz (layout or tile) or protobuf (``TuningData``, ``ModuleTuningData``), a
    serialized ``HloModuleProto`` or ``HloProto``, or HLO text. ``task`` is that of a file without
    configurations.

    Raises:
        GraphFileError: for anything else; the message names the file and what is wrong.
    """
    path = Path(path)
    try:
        return _graphs(path, path.read_bytes(), task)
    except (GraphFileError, ConfigurationError) as error:
        raise GraphFileError(f"{path}: {error}") from error
    except DecodeError as error:
        raise GraphFileError(f"{path}: a message in it is broken: {error}") from error


def read_graph(path: str | PathLike[str], *, module: int, task: Task) -> MeasuredGraph:
    """One of the graphs of a file, from 0."""
    graphs = read_graphs(path, task=task)
    if not 0 <= module < len(graphs):
        raise GraphFileError(f"{path}: there is no graph {module}, it has {len(graphs)}")
    return graphs[module]


def _graphs(path: Path, data: bytes, task: Task) -> list[MeasuredGraph]:
    if data.startswith(b"PK"):
        return [_npz_graph(path, task)]
    if _TEXT.match(data):
        return [_bare(path.stem, Graph.from_hlo_text(_text(data), task=task))]
    inner = _wrapped(data)
    if inner is None:
        if not _holds_computations(data):
            raise GraphFileError(
                "it is neither npz, nor HLO text, nor a HloModuleProto, HloProto, TuningData or "
                "ModuleTuningData"
            )
        return [_bare(_module_name(data), Graph.from_hlo_proto(data, task=task))]
    if _wrapped(inner) is not None:
        return [_tuned(kernel) for kernel in TuningData.FromString(data).modules]
    if (tuning := _tuning(data)) is not None:
        return [_tuned(tuning)]
    return [_bare(_module_name(inner), Graph.from_hlo_proto(inner, task=task))]


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise GraphFileError(f"the text is not UTF-8: {error}") from error


def _bare(name: str, graph: Graph) -> MeasuredGraph:
    return MeasuredGraph(name, graph, None, np.zeros(0, np.int64))


def _wrapped(data: bytes) -> bytes | None:
    """What field 1 of a message holds, where that is a message and not the name of a module.

    Every key of a message's first fields is a control character, which no name has.
    """
    try:
        inner = HloProto.FromString(data).hlo_module
    except DecodeError:
        return None
    return inner if any(byte < 0x20 or byte == 0x7F for byte in inner) else None


def _holds_computations(data: bytes) -> bool:
    try:
        return len(HloModuleProto.FromString(data).computations) > 0
    except DecodeError:
        return False


def _module_name(module: bytes) -> str:
    # An HloProto, as its messages are read here, is a module of which only field 1 is.
    return HloProto.FromString(module).hlo_module.decode(errors="replace")


def _tuning(data: bytes) -> Any:
    """A ``ModuleTuningData``; None for the ``HloProto`` that looks alike."""
    try:
        tuning = ModuleTuningData.FromString(data)
    except DecodeError:
        return None
    has_configs = any(run.WhichOneof("config") for run in tuning.runs)
    return tuning if tuning.fingerprint or tuning.config_index_to_node or has_configs else None


def _tuned(tuning: Any) -> MeasuredGraph:
    nodes = _node_numbers("config_index_to_node", list(tuning.config_index_to_node))
    # Layout files list configurable nodes; tile files do not.
    task: Task = "layout" if nodes else "tile"
    graph = Graph.from_hlo_proto(tuning.module, task=task, configurable_nodes=nodes)
    runs = list(_layout_runs(tuning) if nodes else _tile_runs(tuning))
    if not runs:
        return _bare(_module_name(tuning.module), graph)
    configs, times = zip(*runs, strict=True)
    configurations = Layouts(np.stack(configs)) if nodes else _tiles(configs)
    return MeasuredGraph(
        _module_name(tuning.module), graph, configurations, np.array(times, np.int64)
    )


def _measured_runs(tuning: Any, task: Task) -> Iterator[Any]:
    least = _LEAST_TIME[task]
    return (run for run in tuning.runs if not run.error and run.profile.compute_time_ns >= least)


def _layout_runs(tuning: Any) -> Iterator[tuple[np.ndarray, int]]:
    """Layouts [slots, 18] and their times; runs of another number of nodes are left out."""
    for run in _measured_runs(tuning, "layout"):
        nodes = run.module_config.layout_config.nodes
        if run.WhichOneof("config") == "module_config" and len(nodes) == len(
            tuning.config_index_to_node
        ):
            yield np.stack([_entry(node.tensors) for node in nodes]), run.profile.compute_time_ns


def _entry(tensors: Any) -> np.ndarray:
    values = np.full((3, VALUES // 3), -1, np.int64)
    if len(tensors) > len(values):
        raise GraphFileError(f"a node has {len(tensors)} tensors, at most {len(values)}")
    for row, tensor in zip(values, tensors, strict=False):
        dims = tensor.dims[: len(row)]
        row[: len(dims)] = dims
    return values.ravel()


def _tile_runs(tuning: Any) -> Iterator[tuple[Any, int]]:
    for run in _measured_runs(tuning, "tile"):
        if run.WhichOneof("config") == "op_config" and run.op_config.HasField("tile_size_config"):
            yield run.op_config.tile_size_config, run.profile.compute_time_ns


def _tiles(configs: Any) -> Tiles:
    return Tiles(
        kernel_bounds=[list(tile.kernel_bounds) for tile in configs],
        output_bounds=[list(tile.output_bounds) for tile in configs],
        input_bounds=[list(tile.input_bounds) for tile in configs],
    )


def _npz_graph(path: Path, bare_task: Task) -> MeasuredGraph:
    try:
        with np.load(path) as arrays:
            return _graph_of_arrays(path.stem, arrays, bare_task)
    except KeyError as error:
        raise GraphFileError(f"array {error} is missing") from error
    except HlorankError:
        raise
    except Exception as error:  # NumPy, zipfile and zlib each raise what they like.
        raise GraphFileError(f"it is a broken npz: {str(error) or type(error).__name__}") from error


def _graph_of_arrays(name: str, arrays: Any, bare_task: Task) -> MeasuredGraph:
    task: Task = bare_task
    configurations: Layouts | Tiles | None = None
    nodes: list[int] = []
    if "node_config_feat" in arrays:
        task, configurations = "layout", Layouts(arrays["node_config_feat"])
    elif "config_feat" in arrays:
        task, configurations = "tile", Tiles.from_features(arrays["config_feat"])
    if task == "layout" and (ids := arrays.get("node_config_ids")) is not None:
        slots = configurations.slots if isinstance(configurations, Layouts) else ids.size
        ids = _one_each("node_config_ids", ids, slots, "slots")
        nodes = _node_numbers("node_config_ids", ids.tolist())
    graph = Graph.from_features(
        arrays["node_opcode"],
        arrays["node_feat"],
        arrays["edge_index"],
        task=task,
        configurable_nodes=nodes,
    )
    if configurations is None:
        return _bare(name, graph)
    run_times = arrays["config_runtime"]
    run_times = _one_each("config_runtime", run_times, len(configurations), "configurations")
    return MeasuredGraph(name, graph, configurations, run_times)


def _one_each(name: str, array: np.ndarray, count: int, what: str) -> np.ndarray:
    """The whole numbers of an array, one for each of so many things: i64 [count]."""
    numbers = whole_numbers(array, name)
    if numbers.shape != (count,):
        raise GraphFileError(
            f"{name} has shape {list(numbers.shape)}, expected [{count}]: there are {count} {what}"
        )
    return numbers.astype(np.int64)


def _node_numbers(name: str, nodes: list[int]) -> list[int]:
    """Nodes as the wire numbers them."""
    for slot, node in enumerate(nodes):
        if not 0 <= node < 1 << 32:
            raise GraphFileError(f"{name}[{slot}] is {node}, which is no number of a node")
    return nodes
