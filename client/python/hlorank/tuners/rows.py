"""Configurations of tuners as rows of numbers, the same in every list and for every user."""

from collections.abc import Mapping, Sequence
from hashlib import blake2b

import numpy as np

from hlorank import ConfigFeatures, Graph, Result
from hlorank.configurations.adapt import LONGEST, SHORTEST
from hlorank.wire.defaults import NAME_CHARACTERS, TARGET_BYTES

Row = Mapping[str, float]
"""A configuration as numbers, by the names of its parameters."""

_EXACT = 1 << 24
"""Whole numbers up to here are exact as f32."""


def row_of(parameters: Mapping[str, object]) -> dict[str, float]:
    """Returns the numbers of parameters."""
    return {name: number_of(value) for name, value in parameters.items()}


def number_of(value: object) -> float:
    """Returns a number as f32, -1 for None, and a code of 24 bits of anything else.

    The places of texts in a list would differ between users with different lists.
    """
    if value is None:
        return -1.0
    if isinstance(value, int | float) and abs(value) <= _EXACT:
        return float(np.float32(value))
    return float(int.from_bytes(blake2b(str(value).encode(), digest_size=3).digest()))


def result_of(seconds: float, failure: str = "compile", repeats: int = 1) -> Result:
    """Returns a time, or a failure if it cannot be one: tuners write infinity, 0 or nothing."""
    if SHORTEST <= seconds <= LONGEST:
        return Result(float(seconds), repeats=repeats)
    return Result(failure=failure)


def graph_of_rows(name: str, instance: str, columns: Sequence[str]) -> Graph:
    """Returns what stands for the rows of a kernel: a feature set with a column a parameter."""
    encoded = instance.encode()
    is_short = len(encoded) <= TARGET_BYTES
    return Graph.from_feature_set(
        name.encode("ascii", "replace").decode()[:NAME_CHARACTERS],
        config_columns=columns,
        instance=instance if is_short else blake2b(encoded).hexdigest(),
    )


def configurations_of_rows(columns: Sequence[str], rows: Sequence[Row]) -> ConfigFeatures:
    """Returns rows as configurations of their graph."""
    values = np.array([[row[column] for column in columns] for row in rows], np.float32)
    return ConfigFeatures(values[:, None, :])


def digest(source: str) -> str:
    """Returns what tells versions of a kernel's source apart."""
    return blake2b(source.encode(), digest_size=6).hexdigest()
