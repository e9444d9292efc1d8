"""The weights of the autoscheduler's cost model, and noise on them."""

import struct
from functools import cache

import numpy as np

from hlorank_training.measuring.halide.plugin import plugin
from hlorank_training.measuring.halide.schedule import Draw

_SHAPES = ((8, 40, 7), (8,), (24, 39), (24,), (32, 32), (32,))
"""Shapes of the arrays of a weights file, first dimension contiguous."""
_SIGNATURE = struct.pack("<4I", 0x68776631, 3, 3, len(_SHAPES))
"""Begins a weights file: magic number, versions of both kinds of features, and number of arrays."""


@cache
def shipped_weights() -> tuple[np.ndarray, ...]:
    """Returns the weights of the cost model, which the plugin contains."""
    content = plugin().read_bytes()
    at = content.index(_SIGNATURE) + len(_SIGNATURE)
    arrays = []
    for shape in _SHAPES:
        at += 4 * (1 + len(shape))
        size = int(np.prod(shape))
        arrays.append(np.frombuffer(content, "<f4", size, at).reshape(shape, order="F"))
        at += 4 * size
    return tuple(arrays)


def noisy_weights(draw: Draw) -> bytes:
    """Returns a weights file; noise is relative to each weight, and a tenth to its array's mean."""
    random = np.random.default_rng(draw.number)
    content = bytearray(_SIGNATURE)
    for weights in shipped_weights():
        relative, absolute = (random.standard_normal(weights.shape) for _ in range(2))
        size = 0.1 * np.abs(weights).mean()
        changed = weights * (1 + draw.noise * relative) + draw.noise * size * absolute
        content += struct.pack(f"<{1 + weights.ndim}I", weights.ndim, *weights.shape)
        content += changed.astype("<f4").tobytes(order="F")
    return bytes(content)
