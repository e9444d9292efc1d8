"""Checks that arrays contain integers, whatever their type."""

from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike

from hlorank.arrays import array_of
from hlorank.errors import ConfigurationError

_MIN = -(1 << 63)
_MAX = (1 << 63) - 1


def whole_numbers(values: ArrayLike, what: str) -> np.ndarray:
    """Checks that an array has integers that fit i64, and returns it.

    Floats with integer values are accepted, since TpuGraphs' files contain them.

    Raises:
        ConfigurationError: if a value is not such an integer; the message names its place.
    """
    array = array_of(values, what, ConfigurationError)
    if array.dtype.kind == "i" or array.size == 0:
        return array
    if array.dtype.kind == "b":
        return array.astype(np.int8)
    if array.dtype.kind not in "uf":
        raise ConfigurationError(f"{what} has type {array.dtype}, expected whole numbers")
    broken = ~np.isfinite(array) | (array != np.rint(array))
    if broken.any():
        _refuse(array, what, int(broken.argmax()), "not a whole number")
    for extreme in (array.argmin(), array.argmax()):
        if not _MIN <= int(array.flat[extreme]) <= _MAX:
            _refuse(array, what, int(extreme), "which does not fit 64 bits")
    return array


def _refuse(array: np.ndarray, what: str, number: int, reason: str) -> NoReturn:
    """Raises an error about the element with the index ``number`` of the flattened array."""
    place = [int(index) for index in np.unravel_index(number, array.shape)]
    raise ConfigurationError(f"{what}{place} is {array.flat[number]}, {reason}")
