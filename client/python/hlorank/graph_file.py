"""Readers of graph files, which recognize the format by content as the Rust side does."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from hlorank.config_features import ConfigFeatures
from hlorank.configurations import Configurations
from hlorank.errors import ConfigurationError, GraphFileError, HlorankError
from hlorank.graph_source import (
    GraphSource,
    feature_graph_source,
    features_source,
    hlo_proto_source,
    hlo_text_source,
)
from hlorank.layouts import VALUES, Layouts
from hlorank.messages import HloModuleProto, HloProto, ModuleTuningData, TuningData
from hlorank.task import Task
from hlorank.tiles import Tiles
from hlorank.whole_numbers import whole_numbers

# Atomic groups: with backtracking, many comments would take exponential time.
_TEXT = re.compile(rb"(?>\s+|//[^\n]*\n|/\*(?>.*?\*/))*+HloModule\b", re.DOTALL)
_MIN_NANOSECONDS: dict[Task, int] = {"layout": 1, "tile": 2}
"""Shortest run time that counts as measured, as in TpuGraphs."""


@dataclass(frozen=True, eq=False)
class FileGraph:
    """One graph of a file; ``hlorank.MeasuredGraph`` describes the fields."""

    name: str
    source: GraphSource
    configurations: Configurations | None
    run_times: np.ndarray


def file_graphs(path: Path, task: Task) -> list[FileGraph]:
    """Reads every graph of a file; ``task`` applies if the file has no configurations.

    Raises:
        GraphFileError: if the file has another format or is broken.
    """
    try:
        return _graphs(path, path.read_bytes(), task)
    except (GraphFileError, ConfigurationError) as error:
        raise GraphFileError(f"{path}: {error}") from error
    except DecodeError as error:
        raise GraphFileError(f"{path}: cannot parse a message in the file: {error}") from error


def file_graph(path: str | PathLike[str], *, module: int, task: Task) -> FileGraph:
    """Reads the graph with the index ``module``, from 0."""
    graphs = file_graphs(Path(path), task)
    if not 0 <= module < len(graphs):
        raise GraphFileError(f"{path}: graph {module} does not exist, the file has {len(graphs)}")
    return graphs[module]


def _graphs(path: Path, data: bytes, task: Task) -> list[FileGraph]:
    if data.startswith(b"PK"):
        return [_npz_graph(path, task)]
    if _TEXT.match(data):
        return [_bare(path.stem, hlo_text_source(_text(data), task))]
    inner = _wrapped(data)
    if inner is None:
        if not _holds_computations(data):
            raise GraphFileError(
                "the file is neither npz, nor HLO text, nor a HloModuleProto, HloProto, TuningData "
                "or ModuleTuningData"
            )
        return [_bare(_module_name(data), hlo_proto_source(data, task))]
    if _wrapped(inner) is not None:
        return [_tuned(kernel) for kernel in TuningData.FromString(data).modules]
    if (tuning := _tuning(data)) is not None:
        return [_tuned(tuning)]
    return [_bare(_module_name(inner), hlo_proto_source(inner, task))]


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise GraphFileError(f"the text is not UTF-8: {error}") from error


def _bare(name: str, source: GraphSource) -> FileGraph:
    return FileGraph(name, source, None, np.zeros(0, np.int64))


def _wrapped(data: bytes) -> bytes | None:
    """Returns field 1 of a message if that is a message too, and not the name of a module.

    The keys of a message's first fields are control characters, which names do not contain.
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
    # HloProto declares field 1 as bytes, which is where a module has its name.
    return HloProto.FromString(module).hlo_module.decode(errors="replace")


def _tuning(data: bytes) -> Any:
    """Parses a ``ModuleTuningData``; returns None for an ``HloProto``, which parses as one."""
    try:
        tuning = ModuleTuningData.FromString(data)
    except DecodeError:
        return None
    has_configs = any(run.WhichOneof("config") for run in tuning.runs)
    return tuning if tuning.fingerprint or tuning.config_index_to_node or has_configs else None


def _tuned(tuning: Any) -> FileGraph:
    nodes = _node_numbers("config_index_to_node", list(tuning.config_index_to_node))
    # Layout files list configurable nodes; tile files do not.
    task: Task = "layout" if nodes else "tile"
    source = hlo_proto_source(tuning.module, task, nodes)
    runs = list(_layout_runs(tuning) if nodes else _tile_runs(tuning))
    if not runs:
        return _bare(_module_name(tuning.module), source)
    configs, times = zip(*runs, strict=True)
    configurations = Layouts(np.stack(configs)) if nodes else _tiles(configs)
    return FileGraph(_module_name(tuning.module), source, configurations, np.array(times, np.int64))


def _measured_runs(tuning: Any, task: Task) -> Iterator[Any]:
    least = _MIN_NANOSECONDS[task]
    return (run for run in tuning.runs if not run.error and run.profile.compute_time_ns >= least)


def _layout_runs(tuning: Any) -> Iterator[tuple[np.ndarray, int]]:
    """Yields layouts [slots, 18] and their run times; skips runs with another number of nodes."""
    for run in _measured_runs(tuning, "layout"):
        nodes = run.module_config.layout_config.nodes
        if run.WhichOneof("config") == "module_config" and len(nodes) == len(
            tuning.config_index_to_node
        ):
            yield np.stack([_entry(node.tensors) for node in nodes]), run.profile.compute_time_ns


def _entry(tensors: Any) -> np.ndarray:
    values = np.full((3, VALUES // 3), -1, np.int64)
    if len(tensors) > len(values):
        raise GraphFileError(f"a node has {len(tensors)} tensors, the maximum is {len(values)}")
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


def _npz_graph(path: Path, bare_task: Task) -> FileGraph:
    try:
        with np.load(path) as arrays:
            return _graph_of_arrays(path.stem, arrays, bare_task)
    except KeyError as error:
        raise GraphFileError(f"array {error} is missing") from error
    except HlorankError:
        raise
    except Exception as error:  # NumPy, zipfile and zlib raise errors of many types.
        raise GraphFileError(
            f"cannot read the npz: {str(error) or type(error).__name__}"
        ) from error


def _graph_of_arrays(name: str, arrays: Any, bare_task: Task) -> FileGraph:
    if "feature_set" in arrays:
        return _feature_graph(name, arrays)
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
    features = (arrays[key] for key in ("node_opcode", "node_feat", "edge_index"))
    source = features_source(*features, task, nodes)
    return _with_run_times(name, source, configurations, arrays)


def _feature_graph(name: str, arrays: Any) -> FileGraph:
    """Reads the graph of a feature set, whose name is the bytes of an array."""
    feature_set = arrays["feature_set"].astype(np.uint8).tobytes().decode(errors="replace")
    source = feature_graph_source(feature_set, arrays["node_features"], arrays["edge_index"])
    configurations = None
    if "config_features" in arrays:
        configurations = ConfigFeatures(arrays["config_features"])
        nodes = len(arrays["node_features"])
        if configurations.nodes != nodes:
            raise GraphFileError(
                f"config_features have {configurations.nodes} nodes, but the graph has {nodes}"
            )
    return _with_run_times(name, source, configurations, arrays)


def _with_run_times(
    name: str, source: GraphSource, configurations: Configurations | None, arrays: Any
) -> FileGraph:
    if configurations is None:
        return _bare(name, source)
    run_times = arrays["config_runtime"]
    run_times = _one_each("config_runtime", run_times, len(configurations), "configurations")
    return FileGraph(name, source, configurations, run_times)


def _one_each(name: str, array: np.ndarray, count: int, what: str) -> np.ndarray:
    """Returns the integers of an array, which has one for each of ``count`` items: i64 [count]."""
    numbers = whole_numbers(array, name)
    if numbers.shape != (count,):
        raise GraphFileError(
            f"{name} has shape {list(numbers.shape)}, expected [{count}]: there are {count} {what}"
        )
    return numbers.astype(np.int64)


def _node_numbers(name: str, nodes: list[int]) -> list[int]:
    """Checks that node numbers fit the wire's u32, and returns them."""
    for slot, node in enumerate(nodes):
        if not 0 <= node < 1 << 32:
            raise GraphFileError(f"{name}[{slot}] is {node}, expected a node number")
    return nodes
