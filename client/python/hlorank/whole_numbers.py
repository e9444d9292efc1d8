"""Arrays that hold whole numbers, whatever their type."""

import numpy as np
from numpy.typing import ArrayLike

from hlorank.errors import ConfigurationError


def whole_numbers(values: ArrayLike, what: str) -> np.ndarray:
    """The array itself; floats must be whole, as TpuGraphs' files hold them.

    Raises:
        ConfigurationError: for anything else, with the place.
    """
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ConfigurationError(f"{what} is no array: {error}") from error
    if array.dtype.kind in "iu" or array.size == 0:
        return array
    if array.dtype.kind != "f":
        raise ConfigurationError(f"{what} has type {array.dtype}, expected whole numbers")
    broken = ~np.isfinite(array) | (array != np.rint(array))
    if broken.any():
        place = tuple(int(index[0]) for index in broken.nonzero())
        raise ConfigurationError(f"{what}{list(place)} is {array[place]}, not a whole number")
    return array
