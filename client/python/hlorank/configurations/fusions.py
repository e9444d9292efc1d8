"""Fusion configurations."""

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from hlorank.checks.arguments import instance, whole_number
from hlorank.checks.arrays import array_of
from hlorank.checks.errors import ConfigurationError
from hlorank.configurations.batch import Batch
from hlorank.wire.messages import ConfigBatch, DeltaFusionConfigs, PackedFusionConfigs

_BITS = 8
"""Slots per byte, the first in the lowest bit."""
_CHANGE_BYTES = 2
"""Maximum encoded bytes of one change, for programs of at most 16,384 slots."""


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

    @classmethod
    def from_packed(cls, message: PackedFusionConfigs, slots: int | None = None) -> "Fusions":
        """Reads a ``PackedFusionConfigs`` message.

        The message does not contain the number of ``slots``; None takes every bit as a slot, so
        that up to seven slots at the end are not in the program, and are not fused.

        Raises:
            ConfigurationError: if the bits are not those of as many configurations and slots.
        """
        instance(message, PackedFusionConfigs, "message", "a PackedFusionConfigs")
        slots = None if slots is None else whole_number(slots, "slots")
        count = message.config_count
        content = message.fused
        width = len(content) // max(count, 1) if slots is None else -(-slots // _BITS)
        if not count or len(content) != count * width:
            raise ConfigurationError(
                f"{len(content)} bytes are not {count} fusion configurations of one length, "
                f"expected at least one with {width} bytes each"
            )
        rows = np.frombuffer(content, np.uint8).reshape(count, width)
        return cls._of(rows, width * _BITS if slots is None else slots)

    @classmethod
    def _of(cls, rows: np.ndarray, slots: int) -> "Fusions":
        fusions = cls.__new__(cls)
        fusions._rows = rows
        fusions._slots = slots
        if np.unpackbits(rows, axis=1, bitorder="little")[:, slots:].any():
            raise ConfigurationError(f"a bit past the last of {slots} slots is set")
        return fusions

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
        """The message: a delta if that is shorter, else packed."""
        # Neighbours in a search differ in few bits.
        changed = np.unpackbits(self._rows ^ self._rows[0], axis=1, bitorder="little")
        if np.count_nonzero(changed) * _CHANGE_BYTES + len(self) < self._rows.size:
            return ConfigBatch(delta_fusion_configs=self._delta(changed))
        return ConfigBatch(packed_fusion_configs=self.packed())

    def packed(self) -> PackedFusionConfigs:
        """Returns the ``PackedFusionConfigs`` message."""
        return PackedFusionConfigs(config_count=len(self), fused=self._rows.tobytes())

    def _delta(self, changed: np.ndarray) -> DeltaFusionConfigs:
        """Returns the ``DeltaFusionConfigs`` message; its base is the first configuration."""
        return DeltaFusionConfigs(
            base=self._rows[0].tobytes(),
            change_counts=np.count_nonzero(changed, axis=1).tolist(),
            change_slots=changed.nonzero()[1].tolist(),
        )


def from_delta(message: DeltaFusionConfigs) -> Fusions:
    """Reads a ``DeltaFusionConfigs`` message; every bit is a slot, as in ``from_packed``.

    Raises:
        ConfigurationError: if a change has no configuration or no slot.
    """
    counts, slots = (np.array(v, np.int64) for v in (message.change_counts, message.change_slots))
    base = np.frombuffer(message.base, np.uint8)
    if not len(counts) or counts.sum() != len(slots) or slots.max(initial=-1) >= _BITS * len(base):
        raise ConfigurationError(
            f"{len(slots)} changes of {_BITS * len(base)} slots do not fit the counts"
        )
    bits = np.tile(np.unpackbits(base, bitorder="little"), (len(counts), 1))
    bits[np.repeat(np.arange(len(counts)), counts), slots] ^= 1
    return Fusions(bits)


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
