"""Arrays that callers pass: converted and checked, with errors that name the place."""

from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike

from hlorank.checks.arguments import shown
from hlorank.checks.errors import ConfigurationError, GraphFileError

Error = type[ConfigurationError] | type[GraphFileError]


def array_of(values: ArrayLike, what: str, error: Error) -> np.ndarray:
    """Returns an array; raises ``error`` about ``what`` if there is none."""
    try:
        return np.asarray(values)
    except Exception as problem:  # arrays of other libraries raise errors of many types
        reason = f"{shown(values)} does not convert to one; pass an array of NumPy"
        if isinstance(values, list | tuple) and isinstance(problem, ValueError):
            reason = "its lists differ in length"
        elif hasattr(values, "detach"):
            reason = "it is a tensor with gradients or on a device; pass x.detach().cpu().numpy()"
        raise error(f"{what} is not an array: {reason}") from problem


def floats(values: ArrayLike, what: str, axes: tuple[str, ...], error: Error) -> np.ndarray:
    """Returns numbers as contiguous f32, with 0 in place of -0; the server wants finite ones.

    Raises:
        error: if the array is empty, or has other axes, or something else than numbers.
    """
    array = array_of(values, what, error)
    if array.ndim != len(axes) or array.size == 0:
        expected = ", ".join(f"{axis}s" for axis in axes)
        raise error(
            f"{what} has shape {list(array.shape)}, expected [{expected}], at least one of each"
        )
    if array.dtype.kind not in "biuf":
        raise error(f"{what} has type {array.dtype}, expected numbers")
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(array, "<f4") + np.float32(0)


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
