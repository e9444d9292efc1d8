"""Configurations of tuners as rows of numbers, the same in every list and for every user."""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from math import inf
from typing import Any

from numpy import float32

Row = Mapping[str, float]
"""A configuration as numbers, by the names of its parameters."""
Outcome = float | str
"""What came of measuring: seconds, or one of ``hlorank.adapt.FAILURES``."""

_EXACT = 1 << 24
_NAME_CHARACTERS = 128
_INSTANCE_BYTES = 256


def row_of(parameters: Mapping[str, Any]) -> dict[str, float]:
    """Returns the numbers of parameters."""
    return {name: number_of(value) for name, value in parameters.items()}


def number_of(value: Any) -> float:
    """Returns a number as f32, -1 for None, and a code of 24 bits of anything else.

    The places of texts in a list would differ between users with different lists.
    """
    if value is None:
        return -1.0
    if isinstance(value, int | float) and abs(value) <= _EXACT:
        return float(float32(value))
    return float(int.from_bytes(blake2b(str(value).encode(), digest_size=3).digest()))


def key_of(row: Row) -> tuple[tuple[str, float], ...]:
    """Returns what equal rows have in common."""
    return tuple(sorted(row.items()))


def distinct(rows: Sequence[Row]) -> list[int]:
    """Returns the number of the first of each group of equal rows."""
    first: dict[Any, int] = {}
    for number, row in enumerate(rows):
        first.setdefault(key_of(row), number)
    return list(first.values())


def outcome_of(milliseconds: float) -> Outcome:
    """Returns seconds; a failure to compile if the time is infinite, as tuners write it."""
    return milliseconds / 1e3 if 0 < milliseconds < inf else "compile"


def digest(source: str) -> str:
    """Returns what tells versions of a kernel's source apart."""
    return blake2b(source.encode(), digest_size=6).hexdigest()


def name_of(text: str) -> str:
    """Returns a name that a feature set may have."""
    return text.encode("ascii", "replace").decode()[:_NAME_CHARACTERS]


def instance_of(text: str) -> str:
    """Returns a name that an instance may have."""
    encoded = text.encode()
    return text if len(encoded) <= _INSTANCE_BYTES else blake2b(encoded).hexdigest()
