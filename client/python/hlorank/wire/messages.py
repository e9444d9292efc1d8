"""The wire messages and enums of ``hlorank.v1`` by name, built from ``messages.binpb``.

Generated code works only with versions of protobuf from the one that generated it, and a process
has one version: that of JAX, TensorFlow or whatever else it imports. Descriptors work with all. A
pool of their own avoids conflicts with files of the same names. ``messages.pyi`` and the stubs in
``v1`` have the types; ``make messages`` writes all of these files.
"""

from importlib import resources
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message_factory import GetMessageClass

_POOL = DescriptorPool()
# Files are added in the order of the set, in which a file follows those that it imports.
for _file in FileDescriptorSet.FromString(
    resources.files(__package__).joinpath("messages.binpb").read_bytes()
).file:
    _POOL.Add(_file)


def __getattr__(name: str) -> Any:
    """Builds a class when it is first used: a program uses few of them, and imports stay fast."""
    full_name = f"hlorank.v1.{name}"
    try:
        built: Any = GetMessageClass(_POOL.FindMessageTypeByName(full_name))
    except KeyError:
        try:
            built = EnumTypeWrapper(_POOL.FindEnumTypeByName(full_name))
        except KeyError:
            raise AttributeError(f"the wire has no message or enum {full_name}") from None
    globals()[name] = built
    return built
