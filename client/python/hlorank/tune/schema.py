"""The messages of ``tuning.proto``, made of the descriptors in ``tuning.binpb``.

A pool of their own keeps them apart from XLA's messages of the same names.
``make client-messages`` writes the descriptors.
"""

from importlib import resources
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClassesForFiles

DESCRIPTORS = "tuning.binpb"


def _classes() -> dict[str, type[Message]]:
    content = resources.files(__package__).joinpath(DESCRIPTORS).read_bytes()
    pool, files = DescriptorPool(), FileDescriptorSet.FromString(content).file
    for file in files:
        pool.AddSerializedFile(file.SerializeToString())
    return GetMessageClassesForFiles([file.name for file in files], pool)


_CLASSES = _classes()


def _message(name: str) -> Any:
    """The class of a message; its fields are those of ``tuning.proto``."""
    return _CLASSES[f"hlorank_tune.{name}"]


HloModuleProto = _message("HloModuleProto")
HloInstructionProto = _message("HloInstructionProto")
ShapeProto = _message("ShapeProto")
ConfigProfile = _message("ConfigProfile")
ModuleTuningData = _message("ModuleTuningData")
TuningData = _message("TuningData")
