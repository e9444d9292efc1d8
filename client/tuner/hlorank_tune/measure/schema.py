"""The messages of ``tuning.proto``, built from the descriptors in ``tuning.binpb``.

A separate descriptor pool avoids conflicts with XLA's messages of the same names.
``make messages`` writes the descriptors.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

DESCRIPTORS = "tuning.binpb"


_CONTENT = resources.files(__package__).joinpath(DESCRIPTORS).read_bytes()
_POOL = DescriptorPool()
for _file in FileDescriptorSet.FromString(_CONTENT).file:
    _POOL.Add(_file)


def _message(name: str) -> Any:
    """Returns the class of a message; ``tuning.proto`` declares its fields."""
    return GetMessageClass(_POOL.FindMessageTypeByName(f"hlorank_measure.{name}"))


HloModuleProto = _message("HloModuleProto")
HloInstructionProto = _message("HloInstructionProto")
ShapeProto = _message("ShapeProto")
ConfigProfile = _message("ConfigProfile")
ModuleTuningData = _message("ModuleTuningData")
TuningData = _message("TuningData")


def strip(module: Any) -> Any:
    """Removes source metadata, which is large, contains paths, and is read by no feature."""
    module.ClearField("stack_frame_index")
    for computation in module.computations:
        for instruction in computation.instructions:
            instruction.ClearField("metadata")
            instruction.ClearField("frontend_attributes")
    return module


@dataclass(frozen=True)
class Tile:
    """One tile configuration of a kernel."""

    output: tuple[int, ...]
    reduction: tuple[int, ...] = ()
    input: tuple[int, ...] = ()


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
