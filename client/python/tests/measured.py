"""Graphs of TpuGraphs' files with their measurements: the tests of the client and of the tuner."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from hlorank import Configurations, Graph, Layouts, Tiles

REPOSITORY = Path(__file__).resolve().parents[3]
DESCRIPTORS = REPOSITORY / "client/tuner/hlorank_tune/measure/tuning.binpb"


@dataclass(frozen=True, eq=False)
class MeasuredGraph:
    """A graph with its measurements."""

    name: str
    graph: Graph
    configurations: Configurations
    run_times: np.ndarray
    """i64 [configs] nanoseconds"""


def read_graphs(path: Path) -> list[MeasuredGraph]:
    """Reads a ``TuningData`` or a ``ModuleTuningData``."""
    content = Path(path).read_bytes()
    try:
        kernels = _message("TuningData").FromString(content).modules
    except DecodeError:  # a module is no list of kernels
        kernels = [_message("ModuleTuningData").FromString(content)]
    return [_measured(kernel) for kernel in kernels]


def features_graph(path: Path) -> Graph:
    """Reads the arrays of a TpuGraphs npz."""
    with np.load(path) as arrays:
        names = ("node_opcode", "node_feat", "edge_index")
        return Graph.from_features(*(arrays[name] for name in names), task="layout")


def form_of(configurations: Configurations):
    """The form in which configurations are sent, and its message."""
    form = configurations.wire.WhichOneof("configs")
    return form, getattr(configurations.wire, form)


def _message(name: str):
    """The class of a message; modules stay bytes, so that they are sent as they are."""
    pool = DescriptorPool()
    for file in FileDescriptorSet.FromString(DESCRIPTORS.read_bytes()).file:
        for message in file.message_type:
            for field in message.field:
                if field.type_name.endswith(".HloModuleProto"):
                    field.type = FieldDescriptorProto.TYPE_BYTES
                    field.ClearField("type_name")
        pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName(f"hlorank_measure.{name}"))


def _measured(tuning) -> MeasuredGraph:
    nodes = list(tuning.config_index_to_node)
    name = tuning.module[2 : 2 + tuning.module[1]].decode()
    runs = [run for run in tuning.runs if not run.error]
    times = np.array([run.profile.compute_time_ns for run in runs], np.int64)
    graph = Graph.from_hlo_proto(
        tuning.module, task="layout" if nodes else "tile", configurable_nodes=nodes
    )
    if nodes:
        layouts = np.full((len(runs), len(nodes), 3, 6), -1)
        for layout, run in zip(layouts, runs, strict=True):
            for slot, node in zip(layout, run.module_config.layout_config.nodes, strict=True):
                for row, tensor in zip(slot, node.tensors, strict=False):
                    row[: len(tensor.dims)] = tensor.dims
        return MeasuredGraph(name, graph, Layouts(layouts), times)
    tiles = [run.op_config.tile_size_config for run in runs]
    lists = ("kernel_bounds", "output_bounds", "input_bounds")
    bounds = {each: [list(getattr(tile, each)) for tile in tiles] for each in lists}
    return MeasuredGraph(name, graph, Tiles(**bounds), times)
