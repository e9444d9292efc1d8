"""The protobuf messages of ``tuning.proto``, compiled when first imported.

A pool of our own keeps them apart from XLA's messages of the same names.
"""

import tempfile
from pathlib import Path

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from grpc_tools import protoc

SOURCE = Path(__file__).with_name("tuning.proto")


def _compile(source: Path) -> descriptor_pb2.FileDescriptorSet:
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "tuning.desc"
        arguments = [
            "protoc",
            f"-I{source.parent}",
            f"--descriptor_set_out={output}",
            source.name,
        ]
        if protoc.main(arguments) != 0:
            raise RuntimeError(f"protoc could not compile '{source.name}'")
        return descriptor_pb2.FileDescriptorSet.FromString(output.read_bytes())


def _messages() -> dict[str, type]:
    pool = descriptor_pool.DescriptorPool()
    for file in _compile(SOURCE).file:
        pool.Add(file)
    return message_factory.GetMessageClassesForFiles([SOURCE.name], pool)


_CLASSES = _messages()
_PACKAGE = "hlorank_training"

HloModuleProto = _CLASSES[f"{_PACKAGE}.HloModuleProto"]
HloInstructionProto = _CLASSES[f"{_PACKAGE}.HloInstructionProto"]
ShapeProto = _CLASSES[f"{_PACKAGE}.ShapeProto"]
ConfigProfile = _CLASSES[f"{_PACKAGE}.ConfigProfile"]
ModuleTuningData = _CLASSES[f"{_PACKAGE}.ModuleTuningData"]
TuningData = _CLASSES[f"{_PACKAGE}.TuningData"]
