"""Fusion configurations."""

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from hlorank.checks.arrays import array_of
from hlorank.checks.errors import ConfigurationError
from hlorank.configurations.batch import Batch
from hlorank.wire.messages import ConfigBatch, PackedFusionConfigs


class Fusions(Batch):
    """Fusion configurations of one program, packed once.

    ``fused`` is [configs, slots], and has a bool for each slot in slot order: whether the node is
    computed inside the kernels of all users that can take it. ``Client.put_graph`` returns the
    slots. 0 and 1 are accepted as well.
    """

    def __init__(self, fused: ArrayLike):
        bits = _checked(fused)
        self._slots: int = bits.shape[1]
        self._rows = np.packbits(bits, axis=1, bitorder="little")

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def slots(self) -> int:
        """Number of slots."""
        return self._slots

    def values(self) -> np.ndarray:
        """Returns the unpacked configurations: bool [configs, slots]."""
        bits = np.unpackbits(self._rows, axis=1, count=self._slots, bitorder="little")
        return bits.astype(bool)

    @cached_property
    def wire(self) -> ConfigBatch:
        """The message."""
        packed = PackedFusionConfigs(config_count=len(self), fused=self._rows.tobytes())
        return ConfigBatch(packed_fusion_configs=packed)


def _checked(fused: ArrayLike) -> np.ndarray:
    """Checks configurations and returns them as bool [configs, slots]."""
    array = array_of(fused, "fused", ConfigurationError)
    if array.ndim != 2:
        raise ConfigurationError(
            f"fusions have shape {list(array.shape)}, expected [configs, slots]"
        )
    if len(array) == 0:
        raise ConfigurationError("there are no configurations")
    if array.dtype.kind not in "biuf":
        raise ConfigurationError(f"fusions have type {array.dtype}, expected bool")
    wrong = (array != 0) & (array != 1)
    if wrong.any():
        config, slot = (int(place[0]) for place in wrong.nonzero())
        raise ConfigurationError(
            f"configuration {config}, slot {slot} is {array[config, slot]}, expected a bool"
        )
    return array.astype(bool)
