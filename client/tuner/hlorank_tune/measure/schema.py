"""The messages of ``tuning.proto``, built from the descriptors in ``tuning.binpb``.

A separate descriptor pool avoids conflicts with XLA's messages of the same names.
``make messages`` writes the descriptors.
"""

from importlib import resources
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorSet

from hlorank.messages import message_classes

DESCRIPTORS = "tuning.binpb"


_CONTENT = resources.files(__package__).joinpath(DESCRIPTORS).read_bytes()
_CLASSES = message_classes(list(FileDescriptorSet.FromString(_CONTENT).file))


def _message(name: str) -> Any:
    """Returns the class of a message; ``tuning.proto`` declares its fields."""
    return _CLASSES[f"hlorank_measure.{name}"]


HloModuleProto = _message("HloModuleProto")
HloInstructionProto = _message("HloInstructionProto")
ShapeProto = _message("ShapeProto")
ConfigProfile = _message("ConfigProfile")
ModuleTuningData = _message("ModuleTuningData")
TuningData = _message("TuningData")
