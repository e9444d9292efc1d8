"""Conversion of what callers pass to arrays."""

import numpy as np
from numpy.typing import ArrayLike

from hlorank.errors import ConfigurationError, GraphFileError

Error = type[ConfigurationError] | type[GraphFileError]


NUMBERS = "expected integers or floats of at most 64 bits"
_KINDS = {
    "O": " (Python objects)",
    "U": " (text)",
    "S": " (text)",
    "V": " (such as bfloat16)",
    "c": " (complex numbers)",
}


def checked_numbers(array: np.ndarray, what: str, error: Error) -> np.ndarray:
    """Returns an array of numbers as it is; raises ``error`` about ``what`` if it has others."""
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        kind = _KINDS.get(array.dtype.kind, "")
        raise error(f"{what} has type `{array.dtype.str}`{kind}, {NUMBERS}")
    return array


def array_of(values: ArrayLike, what: str, error: Error) -> np.ndarray:
    """Returns an array; raises ``error`` about ``what`` if lists differ in length."""
    try:
        return np.asarray(values)
    except Exception as problem:  # arrays of other libraries raise errors of many types
        raise error(f"{what} is not an array: {problem}") from problem


def finite_floats(values: ArrayLike, what: str, axes: tuple[str, ...], error: Error) -> np.ndarray:
    """Returns numbers as contiguous f32, with 0 in place of -0.

    Raises:
        error: if the array is empty or has other axes, or a value is not a finite f32; the message
            names the place.
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
        floats = np.ascontiguousarray(array, "<f4") + np.float32(0)
    broken = ~np.isfinite(floats)
    if broken.any():
        place = np.unravel_index(int(broken.argmax()), array.shape)
        named = ", ".join(f"{axis} {number}" for axis, number in zip(axes, place, strict=True))
        raise error(f"{what}: {named} is {array[place]}, expected a finite f32")
    return floats
