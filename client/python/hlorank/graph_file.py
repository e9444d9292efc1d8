"""Readers of graph files, which recognize the format by content as the Rust side does."""

import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from hlorank.arrays import NUMBERS, checked_numbers
from hlorank.config_features import ConfigFeatures
from hlorank.configurations import Configurations
from hlorank.errors import ConfigurationError, GraphFileError, HlorankError
from hlorank.features import described_set
from hlorank.fusions import Fusions
from hlorank.graph_source import (
    GraphSource,
    feature_graph_source,
    features_source,
    hlo_proto_source,
    hlo_text_source,
)
from hlorank.layouts import VALUES, Layouts
from hlorank.messages import ConfigProfile, ModuleTuningData, PackedFusionConfigs, TuningData
from hlorank.recognize import (
    UnpackError,
    decoded,
    holds_module,
    inner_module,
    is_module,
    modules_of,
    name_of,
    name_of_zip,
    starts_with_module,
    unpacked,
    with_header,
)
from hlorank.recognize.protobuf import fields, first_bytes
from hlorank.task import Task
from hlorank.tiles import Tiles
from hlorank.whole_numbers import whole_numbers

_MIN_NANOSECONDS: dict[Task, int] = {"layout": 1, "tile": 2}
"""Shortest run time that counts as measured, as in TpuGraphs."""
_GRAPH_ARRAYS = {
    "node_opcode",
    "node_feat",
    "edge_index",
    "feature_set",
    "node_features",
    "hlo_module",
}
"""Names of arrays, one of which every graph has."""


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
        return _graphs(path, unpacked(_content(path)), task)
    except (GraphFileError, ConfigurationError, UnpackError) as error:
        raise GraphFileError(f"{path}: {error}") from error
    except OSError as error:
        raise GraphFileError(f"{path}: {error.strerror or error}") from error
    except DecodeError as error:
        raise GraphFileError(f"{path}: cannot parse a message in the file: {error}") from error


def _content(path: Path) -> bytes:
    is_device = path.is_char_device() or path.is_block_device()
    if path.is_dir() or is_device:
        raise GraphFileError(
            f"this is a {'device' if is_device else 'folder'}; pass a file, such as "
            "`*.before_optimizations.txt` or `*.hlo.pb` of a dump"
        )
    return path.read_bytes()


def file_graph(path: str | PathLike[str], *, module: int, task: Task) -> FileGraph:
    """Reads the graph with the index ``module``, from 0."""
    graphs = file_graphs(Path(path), task)
    if not 0 <= module < len(graphs):
        raise GraphFileError(f"{path}: graph {module} does not exist, the file has {len(graphs)}")
    return graphs[module]


def _graphs(path: Path, data: bytes, task: Task) -> list[FileGraph]:
    if data.startswith(b"PK"):
        return [_npz_graph(path.stem, data, task)]
    if is_module(data):
        return [_bare(_module_name(data), hlo_proto_source(data, task))]
    if starts_with_module(data):
        return _texts(path.stem, _modules_of_all(_text(data)), task)
    inner = first_bytes(data, 1)
    if inner is not None and is_module(inner) and _is_tuning(data):
        return [_tuned(ModuleTuningData.FromString(data))]
    if inner is not None and _is_list_of_tuning(data, inner):
        return [_tuned(kernel) for kernel in TuningData.FromString(data).modules]
    if holds_module(data):
        module = inner_module(data)
        return [_bare(_module_name(module), hlo_proto_source(module, task))]
    return _texts(path.stem, _modules_in(data), task)


def _modules_of_all(text: str) -> list[str]:
    """Returns the modules of text that begins with one, which is often all of it."""
    modules = modules_of(text)
    is_all = len(modules) <= 1 and text.rstrip().endswith("".join(modules).rstrip())
    return [text] if is_all else modules


def _modules_in(data: bytes) -> list[str]:
    """Finds the modules in text that begins with something else."""
    text = decoded(data)
    modules = modules_of(text)
    if not modules and (module := with_header(text)) is not None:
        return [module]
    if not modules:
        raise GraphFileError(name_of(data))
    return modules


def _texts(name: str, modules: list[str], task: Task) -> list[FileGraph]:
    names = [name] if len(modules) == 1 else [_text_name(module) for module in modules]
    return [
        _bare(name, hlo_text_source(module, task))
        for name, module in zip(names, modules, strict=True)
    ]


def _text_name(module: str) -> str:
    return module.split(None, 2)[1].partition(",")[0]


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise GraphFileError(f"the text is not UTF-8: {error}") from error


def _bare(name: str, source: GraphSource) -> FileGraph:
    return FileGraph(name, source, None, np.zeros(0, np.int64))


def _module_name(module: bytes) -> str:
    return (first_bytes(module, 1) or b"").decode(errors="replace")


def _is_tuning(data: bytes) -> bool:
    """Returns whether a message around a module is a ``ModuleTuningData``.

    It has a fingerprint, which is a number, or configurable nodes, or its field 3 is a run.
    """
    return any(
        number == 4
        or (number == 2 and isinstance(value, int))
        or (number == 3 and isinstance(value, bytes) and _is_run(value))
        for number, value in fields(data)
    )


def _is_run(data: bytes) -> bool:
    try:
        return ConfigProfile.FromString(data).WhichOneof("config") is not None
    except DecodeError:
        return False


def _is_list_of_tuning(data: bytes, first: bytes) -> bool:
    """Returns whether a message is a ``TuningData``: it has no other field than kernels.

    An ``HloSnapshot`` has the same nesting.
    """
    module = first_bytes(first, 1)
    is_kernel = module is not None and is_module(module)
    return (
        is_kernel
        and all(number == 1 for number, _ in fields(data))
        and (_is_tuning(first) or all(number == 1 for number, _ in fields(first)))
    )


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


def _npz_graph(name: str, data: bytes, bare_task: Task) -> FileGraph:
    try:
        with np.load(io.BytesIO(data)) as arrays:
            if _GRAPH_ARRAYS.isdisjoint(arrays.files):
                raise GraphFileError(name_of_zip(zipfile.ZipFile(io.BytesIO(data)).namelist()))
            return _graph_of_arrays(name, _Arrays(arrays), bare_task)
    except HlorankError:
        raise
    except Exception as error:  # NumPy, zipfile and zlib raise errors of many types.
        raise GraphFileError(
            f"cannot read the npz: {str(error) or type(error).__name__}"
        ) from error


class _Arrays:
    """The arrays of an npz file; errors name the array."""

    def __init__(self, arrays: Any):
        self._arrays = arrays

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._arrays:
            raise GraphFileError(f"array `{name}`: missing")
        try:
            array = self._arrays[name]
        except ValueError as error:
            kind = (
                " has type `|O` (Python objects), "
                if "Object arrays" in str(error)
                else f" {error}, "
            )
            raise GraphFileError(f"array `{name}`:{kind}{NUMBERS}") from error
        if not isinstance(array, np.ndarray):
            raise GraphFileError(f"array `{name}`: not an npy file")
        return checked_numbers(array, f"array `{name}`:", GraphFileError)

    def one_each(self, name: str, count: int | None, what: str) -> np.ndarray:
        """Returns the integers of an array with one for each of ``count`` items: i64 [count]."""
        numbers = whole_numbers(self[name], name)
        if numbers.ndim != 1 or count not in (None, len(numbers)):
            expected = what if count is None else count
            raise GraphFileError(
                f"array `{name}`: has shape {list(numbers.shape)}, expected [{expected}]"
            )
        return numbers.astype(np.int64)


def _graph_of_arrays(name: str, arrays: _Arrays, bare_task: Task) -> FileGraph:
    if "feature_set" in arrays:
        return _feature_graph(name, arrays)
    task: Task = bare_task
    configurations: Layouts | Tiles | None = None
    nodes: list[int] = []
    if "node_config_feat" in arrays:
        task = "layout"
        configurations = Layouts(arrays["node_config_feat"])
    elif "config_feat" in arrays:
        task = "tile"
        configurations = Tiles.from_features(arrays["config_feat"])
    if task == "layout" and "node_config_ids" in arrays:
        nodes = _node_numbers(
            "node_config_ids", arrays.one_each("node_config_ids", None, "slots").tolist()
        )
        _check_slots(configurations, len(nodes))
    if "hlo_module" in arrays and "fused" in arrays:
        return _program(name, arrays)
    features = (arrays[key] for key in ("node_opcode", "node_feat", "edge_index"))
    source = features_source(*features, task, nodes)
    return _with_run_times(name, source, configurations, arrays)


def _program(name: str, arrays: _Arrays) -> FileGraph:
    """Reads a program before fusion: the bytes of its module, and bits [configs, bytes]."""
    module = arrays["hlo_module"].astype(np.uint8).tobytes()
    rows = arrays["fused"].astype(np.uint8)
    bits = PackedFusionConfigs(config_count=len(rows), fused=rows.tobytes())
    source = hlo_proto_source(module, "fusion")
    return _with_run_times(name, source, Fusions.from_packed(bits), arrays)


def _check_slots(configurations: Layouts | Tiles | None, slots: int) -> None:
    if isinstance(configurations, Layouts) and configurations.slots != slots:
        raise GraphFileError(
            f"array `node_config_feat`: has {configurations.slots} slots, expected "
            f"[configurations, {slots}, {VALUES}], because the graph has {slots} slots"
        )


def _feature_graph(name: str, arrays: _Arrays) -> FileGraph:
    """Reads the graph of a feature set, whose name is the bytes of an array."""
    characters = whole_numbers(arrays["feature_set"], "feature_set")
    feature_set = "".join(chr(max(number, 0)) for number in characters.ravel().tolist())
    columns = described_set(feature_set)
    source = feature_graph_source(columns, arrays["node_features"], arrays["edge_index"])
    configurations = None
    if "config_features" in arrays:
        configurations = ConfigFeatures(arrays["config_features"])
        nodes = len(arrays["node_features"])
        if configurations.nodes != nodes:
            raise GraphFileError(
                f"array `config_features`: has {configurations.nodes} nodes, expected "
                f"[configurations, {nodes}, columns], because the graph has {nodes} nodes"
            )
    return _with_run_times(name, source, configurations, arrays)


def _with_run_times(
    name: str, source: GraphSource, configurations: Configurations | None, arrays: _Arrays
) -> FileGraph:
    """Adds run times. A ranking needs none, and 0 means not measured."""
    if configurations is None:
        return _bare(name, source)
    count = len(configurations)
    run_times = np.zeros(count, np.int64)
    if "config_runtime" in arrays:
        run_times = arrays.one_each("config_runtime", count, "configurations")
    if "config_runtime_normalizers" in arrays:
        arrays.one_each("config_runtime_normalizers", count, "configurations")
    return FileGraph(name, source, configurations, run_times)


def _node_numbers(name: str, nodes: list[int]) -> list[int]:
    """Checks that node numbers fit the wire's u32, and returns them."""
    for slot, node in enumerate(nodes):
        if not 0 <= node < 1 << 32:
            raise GraphFileError(f"{name}[{slot}] is {node}, expected a node number")
    return nodes
