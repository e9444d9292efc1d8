"""The wire messages, built from the descriptors in ``messages.binpb``.

A separate descriptor pool avoids conflicts with XLA's messages of the same names. Descriptors work
with every version of protobuf, unlike generated code. ``make messages`` writes them.
"""

from importlib import resources
from typing import Any

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClassesForFiles

DESCRIPTORS = "messages.binpb"


def _keep_modules_as_bytes(message: DescriptorProto) -> None:
    """Declares nested modules as bytes, so that they are sent on unchanged."""
    for field in message.field:
        if field.type_name == ".xla.HloModuleProto":
            field.type = FieldDescriptorProto.TYPE_BYTES
            field.ClearField("type_name")


def _files() -> list[FileDescriptorProto]:
    bytes_of_set = resources.files(__package__).joinpath(DESCRIPTORS).read_bytes()
    files = list(FileDescriptorSet.FromString(bytes_of_set).file)
    for file in files:
        for message in file.message_type:
            _keep_modules_as_bytes(message)
    return files


def message_classes(files: list[FileDescriptorProto]) -> dict[str, type[Message]]:
    """Returns the classes of all messages in these files by full name, in a pool of their own."""
    pool = DescriptorPool()
    for file in files:
        pool.AddSerializedFile(file.SerializeToString())
    return GetMessageClassesForFiles([file.name for file in files], pool)


_CLASSES = message_classes(_files())


def _message(name: str) -> Any:
    """Returns the class of a message; the ``.proto`` file declares its fields."""
    return _CLASSES[name]


WireGraph = _message("hlorank.v1.Graph")
FeatureGraph = _message("hlorank.v1.FeatureGraph")
GraphFeatures = _message("hlorank.v1.GraphFeatures")
ModelSelector = _message("hlorank.v1.ModelSelector")

LayoutTable = _message("hlorank.v1.LayoutTable")
PackedLayoutConfigs = _message("hlorank.v1.PackedLayoutConfigs")
DeltaLayoutConfigs = _message("hlorank.v1.DeltaLayoutConfigs")
TileConfig = _message("hlorank.v1.TileConfig")
TileConfigs = _message("hlorank.v1.TileConfigs")
PackedTileConfigs = _message("hlorank.v1.PackedTileConfigs")

PackedFusionConfigs = _message("hlorank.v1.PackedFusionConfigs")
DeltaFusionConfigs = _message("hlorank.v1.DeltaFusionConfigs")

NodeFeatureConfigs = _message("hlorank.v1.NodeFeatureConfigs")

Adapt = _message("hlorank.v1.Adapt")

ReportMeasurementsRequest = _message("hlorank.v1.ReportMeasurementsRequest")
ReportMeasurementsResponse = _message("hlorank.v1.ReportMeasurementsResponse")
ListMeasurementsRequest = _message("hlorank.v1.ListMeasurementsRequest")
ListMeasurementsResponse = _message("hlorank.v1.ListMeasurementsResponse")
GetMeasuredGraphRequest = _message("hlorank.v1.GetMeasuredGraphRequest")
GetMeasuredGraphResponse = _message("hlorank.v1.GetMeasuredGraphResponse")
DeleteMeasurementsRequest = _message("hlorank.v1.DeleteMeasurementsRequest")
DeleteMeasurementsResponse = _message("hlorank.v1.DeleteMeasurementsResponse")

PutGraphRequest = _message("hlorank.v1.PutGraphRequest")
PutGraphResponse = _message("hlorank.v1.PutGraphResponse")
RankConfigsRequest = _message("hlorank.v1.RankConfigsRequest")
RankConfigsResponse = _message("hlorank.v1.RankConfigsResponse")
SuggestConfigsRequest = _message("hlorank.v1.SuggestConfigsRequest")
SuggestConfigsResponse = _message("hlorank.v1.SuggestConfigsResponse")
RankConfigsStart = _message("hlorank.v1.RankConfigsStart")
ConfigBatch = _message("hlorank.v1.ConfigBatch")
RankConfigsStreamRequest = _message("hlorank.v1.RankConfigsStreamRequest")
RankConfigsStreamResponse = _message("hlorank.v1.RankConfigsStreamResponse")

ListModelsRequest = _message("hlorank.v1.ListModelsRequest")
ListModelsResponse = _message("hlorank.v1.ListModelsResponse")
GetModelRequest = _message("hlorank.v1.GetModelRequest")
GetModelResponse = _message("hlorank.v1.GetModelResponse")
CompareModelsRequest = _message("hlorank.v1.CompareModelsRequest")
CompareModelsResponse = _message("hlorank.v1.CompareModelsResponse")

TraceRecord = _message("hlorank.v1.TraceRecord")

HloModuleProto = _message("xla.HloModuleProto")
HloProto = _message("xla.HloProto")
ConfigProfile = _message("tpu_graphs.ConfigProfile")
ModuleTuningData = _message("tpu_graphs.ModuleTuningData")
TuningData = _message("tpu_graphs.TuningData")
